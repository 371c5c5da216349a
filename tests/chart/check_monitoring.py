"""Alerts and dashboard: they parse, they fire when they should, and every metric they name is one of the program."""

import json
import re
import subprocess
import unittest

import promql_parser
import yaml

from chart import CHART, FILES, ROOT, rendered, run
from program import Gateway

# Metrics that are there with Redis only; docs/metrics.md has them.
WITH_REDIS = {
    "mcpgate_lease_held",
    "mcpgate_store_connected",
    "mcpgate_store_errors_total",
    "mcpgate_store_operation_duration_seconds",
}
# What Prometheus itself makes.
OF_PROMETHEUS = {"up"}


def served_metrics():
    """What /metrics of the program says after a session with a call."""
    with Gateway(ROOT / "config/quickstart.yaml") as gateway:
        gateway.call("mcp_demo_count_words", {"text": "a b"})
        return gateway.metrics()


def names(expression):
    """The metrics that an expression reads."""
    bare = re.sub(r'"(\\.|[^"\\])*"', '""', expression)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", bare)
    return set(re.findall(r"\b(?:mcpgate|process|up)(?:_\w+)?\b", bare))


def without_variables(expression):
    return re.sub(r"\$__(rate_interval|range)\b", "5m", expression)


def expressions():
    """Every expression with where it stands."""
    for group in yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule.get("alert") or rule["record"], rule["expr"]
    board = json.loads((FILES / "dashboard.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], without_variables(target["expr"])
    for annotation in board["annotations"]["list"]:
        yield annotation["name"], without_variables(annotation["expr"])
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], re.fullmatch(r"label_values\((.*), \w+\)", variable["definition"])[1]


class Monitoring(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.metrics = served_metrics()
        cls.families = set(re.findall(r"^# TYPE (\w+)", cls.metrics, re.M))

    def well(self, *command):
        status, said = run(*command)
        self.assertEqual(status, 0, said)

    def test_promtool_accepts_the_rules(self):
        self.well("promtool", "check", "rules", str(FILES / "alerts.yaml"))

    def test_alerts_fire_when_they_should_and_only_then(self):
        self.well("promtool", "test", "rules", str(FILES / "alerts_test.yaml"))

    def test_every_alert_fires_in_some_test(self):
        tests = (FILES / "alerts_test.yaml").read_text()
        for alert in self.alerts():
            self.assertIn(f'alertname="{alert["alert"]}"', tests)

    def test_every_alert_says_how_bad_it_is_and_has_its_place_in_the_runbook(self):
        runbook = (ROOT / "docs/runbook.md").read_text()
        sections = {line[3:].strip() for line in runbook.splitlines() if line.startswith("## Mcpgate")}
        self.assertEqual(sections, {alert["alert"] for alert in self.alerts()})
        for alert in self.alerts():
            self.assertIn(alert["labels"]["severity"], ("critical", "warning", "info"))
            self.assertEqual(set(alert["annotations"]), {"summary", "description", "runbook_url"}, alert["alert"])
            self.assertEqual(alert["annotations"]["runbook_url"], f"docs/runbook.md#{alert['alert'].lower()}")

    def test_the_chart_makes_the_rules_its_own(self):
        found = rendered(CHART / "ci/monitoring-values.yaml")["PrometheusRule", "t-mcpgate"]
        rules = [rule for group in found["spec"]["groups"] for rule in group["rules"]]
        written = [rule for group in yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
        self.assertEqual(len(rules), len(written) - 1)
        made = {rule["alert"]: rule for rule in rules if "alert" in rule}
        self.assertNotIn("McpgateConfigMismatch", made)
        down = made["McpgateDown"]
        self.assertEqual(down["labels"], {"severity": "critical", "team": "platform"})
        self.assertEqual(down["annotations"]["runbook_url"], "https://wiki.example.com/mcpgate#mcpgatedown")
        self.assertEqual([rule["expr"] for rule in rules if "record" in rule], [rule["expr"] for rule in written if "record" in rule])

    def test_every_expression_parses(self):
        count = 0
        for where, expression in expressions():
            with self.subTest(where=where):
                promql_parser.parse(expression)
            count += 1
        self.assertGreater(count, 80)
        with self.assertRaises(ValueError):
            promql_parser.parse("sum(rate(x[5m])")

    def test_every_metric_is_one_of_the_program(self):
        records = {rule["record"].split(":")[1] for rule in self.rules() if "record" in rule}
        read = {}
        for where, expression in expressions():
            for name in names(re.sub(r"\w+:\w+:\w+", "", expression)):
                read.setdefault(name, where)
        self.assertGreater(len(read), 35)
        for name, where in read.items():
            family = re.sub("_(bucket|sum|count)$", "", name)
            known = {name, family} & (self.families | WITH_REDIS | OF_PROMETHEUS)
            with self.subTest(metric=name):
                self.assertTrue(known, f"{where} reads {name}, which /metrics does not have")
        # With sessions in memory some may not show, so what is documented counts too.
        documented = set(re.findall(r"^\| `(mcpgate_\w+)`", (ROOT / "docs/metrics.md").read_text(), re.M))
        self.assertEqual(WITH_REDIS - documented, set(), "docs/metrics.md does not have these")
        self.assertTrue(records)

    def test_every_label_is_one_of_its_metric(self):
        """A misspelt label matches nothing, and nobody would notice."""
        page = (ROOT / "docs/metrics.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \| \w+ \| ([^|]*) \|", page, re.M)
        labels = {name: set(re.findall(r"`(\w+)`", cell)) for name, cell in rows}
        of_targets = {"namespace", "job", "pod", "instance", "le"}
        for where, expression in expressions():
            for name, inner in re.findall(r"\b(mcpgate_\w+)\{([^}]*)\}", expression):
                family = re.sub("_(bucket|sum|count)$", "", name)
                if family in labels:
                    used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", re.sub(r'"[^"]*"', '""', inner)))
                    with self.subTest(where=where, metric=name):
                        self.assertLessEqual(used - of_targets, labels[family])

    def test_the_metrics_are_well_named(self):
        done = subprocess.run(["promtool", "check", "metrics"], input=self.metrics, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    # === dashboard ===

    def test_the_dashboard_is_sound(self):
        board = json.loads((FILES / "dashboard.json").read_text())
        ids = [panel["id"] for panel in board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual({panel["title"] for panel in board["panels"] if panel["type"] == "row"},
                         {"Overview", "Requests", "Sessions and streams", "Servers", "Who comes in", "Replicas and Redis", "Translation", "Runtime"})
        variables = {variable["name"] for variable in board["templating"]["list"]}
        self.assertLessEqual({"datasource", "namespace", "job", "pod", "server"}, variables)
        taken = set()
        for panel in board["panels"]:
            with self.subTest(panel=panel["title"]):
                at = panel["gridPos"]
                cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
                self.assertFalse(cells & taken, "it lies over another")
                self.assertLessEqual(at["x"] + at["w"], 24)
                taken |= cells
                if panel["type"] == "row":
                    continue
                self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "$datasource"})
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"])
                self.assertTrue(panel["description"])
                self.assertTrue(panel["targets"])
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"]["uid"], "$datasource")
                    self.assertTrue(target["expr"])
                    self.assertIn('job=~"$job"', target["expr"])
                    used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval", "__range"}
                    self.assertLessEqual(used, variables)
                    self.assertNotRegex(target["expr"], r"\[\d+m\]", "a fixed interval; write $__rate_interval")

    def test_the_dashboard_shows_every_metric(self):
        page = (ROOT / "docs/metrics.md").read_text()
        shown = (FILES / "dashboard.json").read_text()
        for name in re.findall(r"^\| `(mcpgate_\w+)`", page, re.M):
            if name != "mcpgate_config_last_reload_success_timestamp_seconds":
                self.assertIn(name, shown)

    def rules(self):
        return [rule for group in yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]

    def alerts(self):
        return [rule for rule in self.rules() if "alert" in rule]
