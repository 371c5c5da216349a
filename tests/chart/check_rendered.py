"""What is rendered means what it should: selectors, secrets, times, ports, the boundary around stdio servers."""

import hashlib
import re
import subprocess
import unittest

import yaml

from chart import CHART, RELEASE, VALUES, config, pods, rendered, template, with_values

NAME = f"{RELEASE}-mcpgate"


def matches(selector, labels):
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


class Rendered(unittest.TestCase):
    maxDiff = None

    def each(self, kind):
        """Every object of a kind, of every value file."""
        for file in VALUES:
            for (found, name), each in rendered(file).items():
                if found == kind:
                    self.at = f"{file.name} {name}: "
                    yield file, name, each
        self.at = ""

    at = ""

    def _formatMessage(self, words, standard):
        return self.at + super()._formatMessage(words, standard)

    # === selectors ===

    def test_every_service_selects_the_pods_of_one_deployment(self):
        for file, name, service in self.each("Service"):
            chosen = [pod for pod, labels, _ in pods(rendered(file)) if matches(service["spec"]["selector"], labels)]
            wanted = re.sub("-(admin|peers)$", "", name)
            self.assertEqual(chosen, [wanted])

    def test_selectors_hold_nothing_that_an_upgrade_changes(self):
        for _, _, deployment in self.each("Deployment"):
            keys = set(deployment["spec"]["selector"]["matchLabels"])
            allowed = {f"app.kubernetes.io/{word}" for word in ("name", "instance", "component")} | {"mcpgate/server"}
            self.assertLessEqual(keys, allowed)
            self.assertTrue(matches(deployment["spec"]["selector"]["matchLabels"], deployment["spec"]["template"]["metadata"]["labels"]))

    def test_ports_that_are_named_are_there(self):
        for file, name, service in self.each("Service"):
            _, _, spec = next(pod for pod in pods(rendered(file)) if matches(service["spec"]["selector"], pod[1]))
            names = {port["name"] for port in spec["containers"][0]["ports"]}
            self.assertLessEqual({port["targetPort"] for port in service["spec"]["ports"]}, names)

    def test_every_object_is_in_the_namespace_that_was_asked_for(self):
        found = rendered(CHART / "ci/everything-values.yaml")
        for (kind, name), each in found.items():
            if "extra" not in name and "text" not in name:
                self.assertEqual(each["metadata"]["namespace"], "mcp", (kind, name))
                self.assertEqual(each["metadata"]["labels"]["team"], "platform", (kind, name))

    def test_callers_do_not_reach_the_admin_port(self):
        for _, name, service in self.each("Service"):
            if not name.endswith("-admin"):
                self.assertNotIn("admin", [port["targetPort"] for port in service["spec"]["ports"]])
                self.assertNotIn("publishNotReadyAddresses", service["spec"] if not name.endswith("-peers") else {})

    # === pods ===

    def test_pods_may_do_nothing_that_they_need_not(self):
        for file in VALUES:
            for name, _, spec in pods(rendered(file)):
                with self.subTest(file=file.name, name=name):
                    self.assertIs(spec["automountServiceAccountToken"], False)
                    self.assertIs(spec["securityContext"]["runAsNonRoot"], True)
                    self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
                    ours = [c for c in spec["containers"] + spec.get("initContainers", []) if c["name"] not in ("side", "first")]
                    for container in ours:
                        own = container["securityContext"]
                        self.assertIs(own["allowPrivilegeEscalation"], False)
                        self.assertIs(own["readOnlyRootFilesystem"], True)
                        self.assertEqual(own["capabilities"], {"drop": ["ALL"]})
                        self.assertIn("memory", container["resources"]["limits"])
                        self.assertIn("cpu", container["resources"]["requests"])

    def test_probes_ask_the_admin_port_and_no_server(self):
        for _, _, deployment in self.each("Deployment"):
            container = deployment["spec"]["template"]["spec"]["containers"][0]
            self.assertEqual(container["livenessProbe"]["httpGet"], {"path": "/livez", "port": "admin"})
            for probe in ("readinessProbe", "startupProbe"):
                self.assertEqual(container[probe]["httpGet"], {"path": "/readyz", "port": "admin"})
            self.assertGreaterEqual(container["startupProbe"]["failureThreshold"], 30)

    def test_config_and_secrets_are_mounted_so_that_changes_arrive(self):
        for _, _, deployment in self.each("Deployment"):
            spec = deployment["spec"]["template"]["spec"]
            volumes = {volume["name"] for volume in spec["volumes"]}
            mounts = spec["containers"][0]["volumeMounts"]
            for mount in mounts:
                self.assertNotIn("subPath", mount)
                self.assertIn(mount["name"], volumes)
            # A mount inside another would need a directory there, and those are read-only.
            paths = [mount["mountPath"] for mount in mounts]
            for one in paths:
                self.assertFalse([other for other in paths if other.startswith(f"{one}/")], paths)

    def test_a_change_of_the_config_replaces_pods_only_where_it_must(self):
        def annotations(values):
            return with_values(values)["Deployment", NAME]["spec"]["template"]["metadata"]["annotations"]
        server = {"config": {"mcpServers": {"other": {"url": "https://other.example.com/mcp"}}}}
        limit = {"config": {"limits": {"connections": 5}}}
        self.assertEqual(annotations({}), annotations(server))
        self.assertNotEqual(annotations({}), annotations(limit))
        restart = {"reload": "restart"}
        self.assertNotEqual(annotations(restart), annotations({**server, **restart}))

    # === times ===

    def test_the_grace_period_is_what_the_config_needs(self):
        for shutdown, more, wanted in [
            ({}, {}, 50),
            ({"delay": "0s", "drain": "0s", "children": "0s"}, {}, 5),
            ({"drain": "2m30s"}, {}, 5 + 150 + 10 + 5),
            ({"drain": "1h", "children": "1ms"}, {}, 5 + 3600 + 1 + 5),
            ({"delay": "1500ms", "drain": "250ms", "children": "250ms"}, {}, 2 + 5),
            ({"drain": "1d2h3m4s5ms"}, {}, 5 + 86400 + 7200 + 180 + 4 + 1 + 10 + 5),
            ({}, {"preStopSleep": 7}, 57),
            ({}, {"terminationGracePeriodSeconds": 300}, 300),
        ]:
            with self.subTest(shutdown=shutdown, more=more):
                found = with_values({"config": {"shutdown": shutdown}, **more})
                spec = found["Deployment", NAME]["spec"]["template"]["spec"]
                self.assertEqual(spec["terminationGracePeriodSeconds"], wanted)
                # The same numbers are in the config.
                self.assertEqual(config(found)["shutdown"], {"delay": "5s", "drain": "30s", "children": "10s", **shutdown})

    def test_pods_are_replaced_as_their_sessions_allow(self):
        def strategy(file, **values):
            return with_values(values, file)["Deployment", NAME]["spec"]["strategy"]
        self.assertEqual(strategy("minimal-values.yaml"), {"type": "Recreate"})
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
        self.assertEqual(strategy("ha-redis-values.yaml"), rolling)

    def test_who_scales_does_not_count_replicas(self):
        found = rendered(CHART / "ci/everything-values.yaml")
        self.assertNotIn("replicas", found["Deployment", "the-gate"]["spec"])
        hpa = found["HorizontalPodAutoscaler", "the-gate"]["spec"]
        names = [each.get("pods", each.get("resource"))["metric"]["name"] if each["type"] == "Pods" else each["resource"]["name"] for each in hpa["metrics"]]
        self.assertEqual(names, ["cpu", "mcpgate_sessions_active", "mcpgate_sse_streams_active", "memory"])
        down = hpa["behavior"]["scaleDown"]
        self.assertGreaterEqual(down["stabilizationWindowSeconds"], 600)
        self.assertEqual(down["policies"], [{"type": "Pods", "value": 1, "periodSeconds": 120}])

    def test_a_single_replica_can_be_evicted(self):
        kinds = [kind for kind, _ in rendered(CHART / "ci/minimal-values.yaml")]
        self.assertNotIn("PodDisruptionBudget", kinds)
        self.assertIn(("PodDisruptionBudget", NAME), rendered(CHART / "ci/ha-redis-values.yaml"))

    # === secrets ===

    def test_no_secret_is_written_down(self):
        """What is secret is in a Secret, and a config only says in which file."""
        for _, _, each in self.each("ConfigMap"):
            for body in each["data"].values():
                self.assertNotRegex(body, r"mcpg_|sha256:[0-9a-f]{8}|://[^/\s]*@")
            for path, value in leaves(yaml.safe_load(each["data"].get("mcpgate.yaml", ""))):
                if re.search("(?i)password|token|authorization|x-api-key|keys", "/".join(path)):
                    self.assertEqual(path[-1], "file", path)
                    self.assertRegex(value, "^/etc/mcpgate/")
        for file in VALUES:
            for name, _, spec in pods(rendered(file)):
                for container in spec["containers"]:
                    for variable in container.get("env", []):
                        if re.search("PASSWORD|TOKEN|SECRET|KEY|URL", variable["name"]):
                            self.assertIn("secretKeyRef", variable.get("valueFrom", {}), f"{file.name} {name} {variable}")

    def test_every_file_that_the_config_names_is_mounted(self):
        for file, name, _ in self.each("Deployment"):
            found = rendered(file)
            if ("ConfigMap", name) not in found:
                continue
            spec = found["Deployment", name]["spec"]["template"]["spec"]
            paths = mounted_files(spec)
            named = set(re.findall(r"/etc/mcpgate/[\w/.-]+(?![\w/.*-])", yaml.safe_dump(config(found, name))))
            for path in named:
                self.assertIn(path, paths, f"{file.name} {name}")

    def test_who_may_read_a_secret(self):
        for _, _, deployment in self.each("Deployment"):
            spec = deployment["spec"]["template"]["spec"]
            for volume in spec["volumes"]:
                if "secret" in volume:
                    self.assertEqual(volume["secret"]["defaultMode"], 0o440)
            self.assertIn("fsGroup", spec["securityContext"])

    # === stdio servers ===

    def test_a_stdio_server_is_reached_by_the_gateway_alone(self):
        found = rendered(CHART / "ci/stdio-servers-values.yaml")
        labels = {name: labels for name, labels, _ in pods(found)}
        for server in ("filesystem", "tickets"):
            policy = found["NetworkPolicy", f"{NAME}-{server}"]["spec"]
            self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
            self.assertEqual([name for name in labels if matches(policy["podSelector"]["matchLabels"], labels[name])], [f"{NAME}-{server}"])
            (rule,) = policy["ingress"]
            (peer,) = rule["from"]
            self.assertEqual([name for name in labels if matches(peer["podSelector"]["matchLabels"], labels[name])], [NAME])
            self.assertEqual(rule["ports"], [{"port": 8080, "protocol": "TCP"}])
        internet = [rule for rule in found["NetworkPolicy", f"{NAME}-tickets"]["spec"]["egress"] if "to" in rule]
        self.assertIn("169.254.0.0/16", internet[0]["to"][0]["ipBlock"]["except"])
        self.assertFalse([rule for rule in found["NetworkPolicy", f"{NAME}-filesystem"]["spec"]["egress"] if "to" in rule])

    def test_each_side_of_a_stdio_server_has_its_half_of_the_key(self):
        found = rendered(CHART / "ci/stdio-servers-values.yaml")
        for server, secret in (("filesystem", f"{NAME}-filesystem"), ("tickets", "tickets-key")):
            def items(deployment, volume):
                volumes = found["Deployment", deployment]["spec"]["template"]["spec"]["volumes"]
                (chosen,) = [each["secret"] for each in volumes if each["name"] == volume]
                return chosen["secretName"], [item["key"] for item in chosen["items"]]
            self.assertEqual(items(NAME, f"secret-stdio-{server}"), (secret, ["api-key"]))
            self.assertEqual(items(f"{NAME}-{server}", "key"), (secret, ["keys.yaml"]))
        self.assertNotIn(("Secret", "tickets-key"), found)
        made = found["Secret", f"{NAME}-filesystem"]["stringData"]
        self.assertRegex(made["api-key"], "^mcpg_[A-Za-z0-9]{43}$")
        (entry,) = yaml.safe_load(made["keys.yaml"])["keys"]
        self.assertEqual(entry["hash"], "sha256:" + hashlib.sha256(made["api-key"].encode()).hexdigest())

    def test_every_caller_has_a_child_of_its_own_in_a_stdio_server(self):
        """Stateless requests would all come from the gateway, as one principal, and share a child between tenants."""
        found = rendered(CHART / "ci/stdio-servers-values.yaml")
        for server in ("filesystem", "tickets"):
            entry = config(found)["mcpServers"][server]
            self.assertEqual((entry["isolation"], entry["protocol"]), ("session", "2025-11-25"))
            self.assertEqual(entry["url"], f"http://{NAME}-{server}.default.svc:8080/servers/{server}/mcp")
            inner = config(found, f"{NAME}-{server}")
            self.assertEqual(inner["mcpServers"][server]["isolation"], "session")
            most = inner["mcpServers"][server]["pool"]["max"]
            self.assertEqual(inner["sessions"], {"max": most, "maxPerPrincipal": most})
            self.assertEqual(inner["auth"]["anonymous"], "never")

    def test_a_stdio_server_runs_in_its_own_image(self):
        found = rendered(CHART / "ci/stdio-servers-values.yaml")
        spec = found["Deployment", f"{NAME}-filesystem"]["spec"]["template"]["spec"]
        (init,), (server,) = spec["initContainers"], spec["containers"]
        self.assertEqual(init["image"], found["Deployment", NAME]["spec"]["template"]["spec"]["containers"][0]["image"])
        self.assertEqual(server["image"], "node:22-alpine")
        self.assertEqual(server["command"], ["/opt/mcpgate/mcpgate"])
        self.assertEqual(found["Service", f"{NAME}-tickets"]["spec"]["sessionAffinity"], "ClientIP")
        self.assertNotIn("sessionAffinity", found["Service", f"{NAME}-filesystem"]["spec"])

    # === replicas ===

    def test_replicas_find_each_other(self):
        found = rendered(CHART / "ci/ha-redis-values.yaml")
        peers = found["Service", f"{NAME}-peers"]["spec"]
        self.assertEqual((peers["clusterIP"], peers["publishNotReadyAddresses"]), ("None", True))
        container = found["Deployment", NAME]["spec"]["template"]["spec"]["containers"][0]
        (ip,) = [each for each in container["env"] if each["name"] == "POD_IP"]
        self.assertEqual(ip["valueFrom"], {"fieldRef": {"fieldPath": "status.podIP"}})
        self.assertEqual(config(found)["cluster"]["advertise"], "${POD_IP}:7443")
        policy = found["NetworkPolicy", NAME]["spec"]
        for rules, side in ((policy["ingress"], "from"), (policy["egress"], "to")):
            (rule,) = [rule for rule in rules if rule.get("ports") == [{"port": 7443, "protocol": "TCP"}]]
            self.assertEqual([list(peer) for peer in rule[side]], [["podSelector"]])
        self.assertIn([{"port": 6380, "protocol": "TCP"}], [rule.get("ports") for rule in policy["egress"]])

    def test_redis_is_reached_at_the_ports_that_are_named(self):
        def ports(**redis):
            values = {"redis": redis, "networkPolicy": {"enabled": True}, "cluster": {"existingSecret": "x"}}
            egress = with_values(values)["NetworkPolicy", NAME]["spec"]["egress"]
            return [port["port"] for port in egress[-1]["ports"]]
        self.assertEqual(ports(url="redis://redis"), [6379])
        self.assertEqual(ports(url="rediss://redis:7000/3"), [7000])
        self.assertEqual(ports(nodes=["redis://a:7001", "redis://b:7002"]), [7001, 7002])
        self.assertEqual(ports(sentinel={"master": "m", "urls": ["redis://a:26380"]}), [26380, 6379])
        self.assertEqual(ports(existingSecret="x", urlKey="url", port=6400), [6400])

    def test_nothing_asks_for_sticky_sessions(self):
        for file, name, service in self.each("Service"):
            if name.startswith(NAME) and "tickets" not in name:
                self.assertNotIn("sessionAffinity", service["spec"], file.name)

    def test_streams_are_not_cut_by_a_route(self):
        route = rendered(CHART / "ci/gateway-api-values.yaml")["HTTPRoute", NAME]["spec"]
        self.assertEqual(route["rules"][-1]["timeouts"], {"request": "0s", "backendRequest": "0s"})
        self.assertEqual(route["rules"][0]["backendRefs"][0]["name"], NAME)

    # === notes ===

    def test_the_notes_warn_of_an_open_door(self):
        def notes(file):
            command = ["helm", "install", "--dry-run=client", "t", str(CHART), "--values", str(CHART / "ci" / file)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.split("NOTES:")[1]
        self.assertIn("acceptedFromAnywhere", notes("open-values.yaml"))
        self.assertNotIn("WARNING", notes("minimal-values.yaml"))
        self.assertIn("https://mcp.example.com/mcp", notes("gateway-api-values.yaml"))


def leaves(tree, path=()):
    """What a config says, with the keys that lead there."""
    if isinstance(tree, dict):
        for key, below in tree.items():
            yield from leaves(below, (*path, key))
    elif tree is not None:
        yield path, tree


def mounted_files(spec):
    """The files that volumes put under /etc/mcpgate, as far as they are named, and any of a volume that names none."""
    class Any(set):
        def __contains__(self, path):
            return super().__contains__(path) or any(path.startswith(whole) for whole in wholes)
    paths, wholes = Any(), []
    mounts = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    for volume in spec["volumes"]:
        at = mounts.get(volume["name"], "")
        if not at.startswith("/etc/mcpgate"):
            continue
        sources = [volume, *volume.get("projected", {}).get("sources", [])]
        for source in [each.get("secret") or each.get("configMap") for each in sources]:
            if source and "items" in source:
                paths.update(f"{at}/{item['path']}" for item in source["items"])
            elif source:
                wholes.append(f"{at}/")
    return paths
