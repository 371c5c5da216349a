"""The program reads every config that the chart writes, and means by it what the chart means."""

import os
import re
import tempfile
import unittest
import urllib.error
from pathlib import Path

import yaml

from chart import CHART, VALUES, config, objects, rendered, run, template, with_values
from program import Gateway

MCPGATE = os.environ["MCPGATE"]
HASHES = "keys: [{ id: a, hash: sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad }]\n"


def contents(name):
    """What a file of this name may hold."""
    secret = "A" * 43 + "="  # as a cluster key: 32 bytes in base64
    if name.endswith(".crt"):
        return f"-----BEGIN CERTIFICATE-----\n{secret}\n-----END CERTIFICATE-----\n"
    if name != "cluster-keys" and ("key" in name or "hashes" in name):
        return HASHES
    return secret


def checked(text):
    """What `mcpgate check` says of a config whose files are all there."""
    with tempfile.TemporaryDirectory() as folder:
        text = text.replace("/etc/mcpgate", folder)
        for path in re.findall(re.escape(folder) + r"/[\w/.-]+", text):
            file = Path(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(contents(file.name))
        file = Path(folder) / "mcpgate.yaml"
        file.write_text(text)
        return run(MCPGATE, "check", "--config", str(file), env={**os.environ, "POD_IP": "192.0.2.1", "MCPGATE_REDIS_URL": "redis://redis"})


class Config(unittest.TestCase):
    def test_the_program_accepts_every_config(self):
        seen = 0
        for file in VALUES:
            for (kind, name), each in rendered(file).items():
                text = each.get("data", {}).get("mcpgate.yaml") if kind == "ConfigMap" else None
                if text:
                    with self.subTest(file=file.name, name=name):
                        status, said = checked(text)
                        self.assertEqual(status, 0, said)
                    seen += 1
        self.assertGreater(seen, 12)

    def test_a_config_that_is_wrong_is_not_accepted(self):
        status, said = checked("mcpServers: { a: { urls: x } }\n")
        self.assertNotEqual(status, 0, said)

    def test_the_chart_knows_whether_the_program_reads_include(self):
        """If this fails, one of them has unlearnt it: see mcpgate.readsInclude."""
        _, said = checked("include: [conf.d/*.yaml]\nmcpServers: { a: { url: http://a/mcp } }\n")
        reads = not re.search(r"\binclude: is not available in this version", said)
        try:
            rendered_include = "include" in config_of({"configMaps": ["team-a"]})
        except Exception:
            rendered_include = False
        self.assertEqual(reads, rendered_include, said)

    def test_files_of_several_config_maps_are_found_where_the_chart_mounts_them(self):
        found = rendered(CHART / "ci/config-maps-values.yaml")
        text = found["ConfigMap", "t-mcpgate"]["data"]["mcpgate.yaml"]
        spec = found["Deployment", "t-mcpgate"]["spec"]["template"]["spec"]
        maps = {each["name"]: each["configMap"]["name"] for each in spec["volumes"] if each["name"].startswith("conf-d")}
        mounts = {each["name"]: each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
        self.assertEqual(sorted(maps.values()), ["mcp-team-a", "mcp-team-b"])
        with tempfile.TemporaryDirectory() as folder:
            for volume, name in maps.items():
                # As the kubelet does it: the files lead through ..data.
                mounted = Path(mounts[volume].replace("/etc/mcpgate", folder))
                (mounted / "..v1").mkdir(parents=True)
                (mounted / "..data").symlink_to("..v1")
                (mounted / "..v1/servers.yaml").write_text(f"mcpServers: {{ {name}: {{ url: http://{name}/mcp }} }}\n")
                (mounted / "servers.yaml").symlink_to("..data/servers.yaml")
            file = Path(folder) / "config/mcpgate.yaml"
            file.parent.mkdir()
            keys = Path(folder) / "secrets/api-keys/keys.yaml"
            keys.parent.mkdir(parents=True)
            keys.write_text(HASHES)
            file.write_text(text.replace("/etc/mcpgate", folder))
            status, said = run(MCPGATE, "check", "--config", str(file))
        self.assertEqual(status, 0, said)
        for name in maps.values():
            self.assertIn(f"server   {name} (calls", said)

    def test_defaults_of_the_chart_are_those_of_the_program(self):
        _, schema = run(MCPGATE, "schema")
        self.assertIn("shutdown", schema)
        example = yaml.safe_load((CHART / "../../config/example.yaml").read_text())
        written = config(rendered(CHART / "ci/minimal-values.yaml"))
        self.assertEqual(written["shutdown"], example["shutdown"])
        redis = yaml.safe_load((CHART / "values.yaml").read_text())["cluster"]
        self.assertEqual((redis["port"], redis["lease"]), (8081, "5s"))

    def test_a_call_passes_through_the_gateway_to_a_stdio_server(self):
        """Both run what the chart wrote for them; only addresses and folders are others."""
        values = {"stdioServers": {"words": {"image": "x", "command": "sh", "env": {"PRICE": "${5}"},
                                             "args": ["-c", 'test "$PRICE" = "\\${5}" && exec mcpgate demo-server']}}}
        found = with_values(values, "open-values.yaml")
        with tempfile.TemporaryDirectory() as folder:
            key = Path(folder) / "etc/secrets/stdio-words/api-key"
            hashes = Path(folder) / "etc/key/keys.yaml"
            for file, data in ((key, "api-key"), (hashes, "keys.yaml")):
                file.parent.mkdir(parents=True)
                file.write_text(found["Secret", "t-mcpgate-words"]["stringData"][data])
            def written(name, *changes):
                text = found["ConfigMap", name]["data"]["mcpgate.yaml"]
                for old, new in (("/etc/mcpgate", f"{folder}/etc"), ("/var/lib/mcpgate", folder), ("/tmp/state", folder), ("delay: 5s", "delay: 0s"), *changes):
                    text = text.replace(old, new)
                file = Path(folder) / f"{name}.yaml"
                file.write_text(text)
                return file
            with Gateway(written("t-mcpgate-words")) as server:
                with Gateway(written("t-mcpgate", ("http://t-mcpgate-words.default.svc:8080", server.callers))) as gateway:
                    self.assertIn('\\"words\\":2', gateway.call("mcp_words_count_words", {"text": "a b"}))
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    server.call("count_words", {"text": "a b"})
                self.assertEqual(refused.exception.code, 401)


def config_of(values):
    return config(objects(template(CHART / "ci/minimal-values.yaml", values=values)))
