"""Linters and schemas: Helm's own, Kubernetes's, those of custom resources, YAML, the Dockerfile."""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

from chart import CHART, ROOT, VALUES, rendered, run, template

VERSIONS = [f"1.{minor}" for minor in range(29, 38)]
# What kubernetes-validate has no schema for, and crds.mjs has.
CUSTOM = {"HTTPRoute", "PodMonitor", "PrometheusRule", "ServiceMonitor"}


class Lint(unittest.TestCase):
    maxDiff = None

    def well(self, *command):
        status, said = run(*command)
        self.assertEqual(status, 0, f"{' '.join(command)}\n{said}")
        return said

    def test_helm_lints_the_chart_with_every_value_file(self):
        for file in [None, *VALUES]:
            with self.subTest(file=file and file.name):
                self.well("helm", "lint", "--strict", str(CHART), *(["--values", str(file)] if file else []))

    def test_a_key_that_is_misspelt_is_refused(self):
        for values in [{"replicaCounts": 2}, {"image": {"tags": "x"}}, {"image": {"digest": "sha256:x"}},
                       {"stdioServers": {"a": {"images": "x"}}}, {"redis": {"url": "http://x"}}, {"replicaCount": "2"}]:
            with self.subTest(values=values), self.assertRaisesRegex(Exception, "don't meet the specifications"):
                template(VALUES[0], values=values)

    def test_every_key_of_the_values_is_explained(self):
        above, parents = "", []
        for number, line in enumerate((CHART / "values.yaml").read_text().splitlines(), 1):
            indent = len(line) - len(line.lstrip())
            if match := re.match(r" *[A-Za-z]\w*:( |$)", line):
                parents = [parent for parent in parents if parent[0] < indent]
                explained = "# --" in above
                # What stands in an explained default needs no words of its own; a mere heading does not either.
                if not line.endswith(":"):
                    self.assertTrue(explained or any(done for _, done in parents), f"values.yaml:{number}: {line}")
                parents.append((indent, explained))
            above = above + line if line.lstrip().startswith("#") else ""

    def test_the_schemas_of_kubernetes_accept_what_is_rendered(self):
        for file in VALUES:
            if file.name == "everything-values.yaml":
                # preStop.sleep is newer than 1.29.
                text, versions = template(file, values={"preStopSleep": None}), VERSIONS
            else:
                text, versions = template(file), VERSIONS
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "out.yaml"
                out.write_text(text)
                for version in versions if file.name == "everything-values.yaml" else [VERSIONS[0], VERSIONS[-1]]:
                    with self.subTest(file=file.name, version=version):
                        said = self.well("kubernetes-validate", "-k", version, "--strict", str(out))
                        unknown = set(re.findall(r"find schema for kind (\w+)", said))
                        self.assertLessEqual(unknown, CUSTOM)

    def test_the_schemas_of_custom_resources_accept_what_is_rendered(self):
        found = [each for file in VALUES for each in rendered(file).values() if each["kind"] in CUSTOM]
        self.assertEqual({each["kind"] for each in found}, CUSTOM)
        script = ROOT / "target/chart/crds.mjs"
        # Modules are looked for beside the script that imports them.
        script.write_text((ROOT / "tests/chart/crds.mjs").read_text())
        done = subprocess.run(["node", str(script)], input=json.dumps(found), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.split(), [str(len(found))])
        # It does find mistakes.
        for broken in [{**each, "spec": {}} for each in found]:
            done = subprocess.run(["node", str(script)], input=json.dumps([broken]), capture_output=True, text=True, timeout=60)
            if broken["kind"] in ("ServiceMonitor", "PodMonitor"):
                self.assertNotEqual(done.returncode, 0, broken["kind"])

    def test_yaml_is_tidy(self):
        rules = {"extends": "default", "rules": {
            "line-length": {"max": 130}, "document-start": "disable", "comments": {"min-spaces-from-content": 1},
            "braces": {"max-spaces-inside": 1}, "truthy": {"check-keys": False}, "comments-indentation": "disable",
        }}
        files = [CHART / "Chart.yaml", *CHART.glob("values*.yaml"), *VALUES, *(CHART / "files").glob("*.yaml")]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            yaml.safe_dump(rules, config)
            config.flush()
            loose = [file for file in files if file.name != "alerts_test.yaml"]
            self.well("yamllint", "--strict", "-c", config.name, *map(str, loose))

    def test_the_dockerfile_is_lint_free(self):
        self.well("hadolint", str(ROOT / "Dockerfile"))

    def test_nothing_names_where_packages_come_from(self):
        registries = re.compile(r"(docker|ghcr|quay|gcr|registry\.k8s)\.io/|registry\.npmjs|pypi\.org")
        for file in [ROOT / "Dockerfile", *CHART.rglob("*"), *(ROOT / "tests/chart").glob("*"), *(ROOT / "tests/run.d").glob("*")]:
            if file.is_file() and file != Path(__file__).resolve():
                for line in file.read_text().splitlines():
                    # Labels and annotations are named like hosts, and API groups too.
                    bare = re.sub(r"[\w.-]+\.(kubernetes|helm|artifacthub|ingress\.kubernetes)\.(io|sh)/", "", line)
                    self.assertIsNone(registries.search(bare), f"{file}: {line}")
