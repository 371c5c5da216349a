"""What could not work is refused, with what to do, and all of it at once."""

import unittest

from chart import Refused, template, VALUES, CHART

MINIMAL = CHART / "ci/minimal-values.yaml"
REDIS = {"redis": {"url": "redis://redis:6379"}, "cluster": {"existingSecret": "x"}}

# Values over the minimal ones, and words of the refusal.
CASES = [
    ({"replicaCount": 2}, "replicaCount over 1"),
    ({"autoscaling": {"enabled": True}}, "replicaCount over 1 and autoscaling"),
    ({"redis": {"url": "redis://redis:6379"}}, "redis needs cluster.existingSecret"),
    ({**REDIS, "redis": {"url": "redis://a", "nodes": ["redis://b"]}}, "several of url"),
    ({**REDIS, "redis": {"url": "redis://user:pw@redis"}}, "has a user or password in it"),
    ({**REDIS, "redis": {"nodes": ["redis://:pw@redis"]}}, "has a user or password in it"),
    ({**REDIS, "redis": {"sentinel": {"master": "m"}}}, "needs redis.sentinel.urls"),
    ({"redis": {"sentinel": {"urls": ["redis://s"]}}}, "needs redis.sentinel.master"),
    ({**REDIS, "redis": {"urlKey": "url"}}, "redis.urlKey is a key of redis.existingSecret"),
    ({"redis": {"existingSecret": "x"}}, "nothing says where Redis is"),
    ({**REDIS, "redis": {"url": "rediss://a", "tls": {"existingSecret": "a", "existingConfigMap": "b"}}}, "keep one"),
    ({**REDIS, "replicaCount": 2, "config": {"store": "memory"}}, "config.store is memory"),
    ({"apiKeys": {"existingSecret": ""}}, "anybody in the cluster could call"),
    ({"apiKeys": {"existingSecret": ""}, "config": {"auth": {"anonymous": "never"}}}, "no other way in"),
    ({"config": {"auth": {"jwt": [{"issuer": "https://i"}]}}}, "needs config.publicUrl"),
    ({"config": {"listen": "127.0.0.1:8080"}}, "where the Service cannot reach it"),
    ({"config": {"listen": "[::1]:8080"}}, "where the Service cannot reach it"),
    ({"config": {"admin": {"listen": "off"}}}, "where probes cannot reach it"),
    ({"config": {"admin": {"listen": "127.0.0.1:9090"}}}, "where probes cannot reach it"),
    ({"config": {"mcpServers": None}}, "there is no server"),
    ({"config": {"shutdown": {"drain": "soon"}}}, '"soon" under config.shutdown is no duration'),
    ({"terminationGracePeriodSeconds": 40}, "less than config.shutdown takes (50 s)"),
    ({"terminationGracePeriodSeconds": 52, "preStopSleep": 5}, "less than config.shutdown takes"),
    ({"existingConfigMap": "x"}, "existingConfigMap holds the whole config"),
    ({"configMaps": ["../team-a"]}, "configMaps"),
    ({"configMaps": ["team-a", "team-a"]}, "configMaps"),
    ({"stdioServers": {"github": {"image": "x", "command": "run"}}}, "under both stdioServers and config.mcpServers"),
    ({"stdioServers": {"a": {"command": "run"}}}, "stdioServers.a.image is missing"),
    ({"stdioServers": {"a": {"image": "x"}}}, "stdioServers.a.command is missing"),
    ({"stdioServers": {"a_b": {"image": "x", "command": "run"}}}, "a_b"),
    ({"stdioServers": {"a": {"image": "x", "command": "run", "server": {"url": "http://elsewhere"}}}}, "not' failed"),
    ({**REDIS, "replicaCount": 2, "stateClaim": "x"}, "stateClaim is for a single replica"),
    ({"secrets": {"redis": {"existingSecret": "x"}}}, "a name that the chart uses itself"),
    ({"secrets": {"stdio-a": {"existingSecret": "x"}}}, "begins with stdio-"),
    ({"metrics": {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}}, "scraped twice"),
    ({"metrics": {"serviceMonitor": {"enabled": True}, "service": {"enabled": False}}}, "needs metrics.service"),
    ({"httpRoute": {"enabled": True}}, "httpRoute needs parentRefs"),
    ({"podDisruptionBudget": {"minAvailable": 1}}, "set maxUnavailable to null"),
    ({**REDIS, "autoscaling": {"enabled": True, "minReplicas": 5, "maxReplicas": 3}}, "more than maxReplicas"),
    ({**REDIS, "autoscaling": {"enabled": True, "targetCPUUtilizationPercentage": None}}, "autoscaling has no target"),
    ({**REDIS, "autoscaling": {"enabled": True}, "resources": {"requests": {"cpu": None}}}, "needs resources.requests.cpu"),
]


class Refusals(unittest.TestCase):
    def refused(self, *files, **options):
        with self.assertRaises(Refused) as caught:
            template(*files, **options)
        return str(caught.exception)

    def test_what_cannot_work_is_refused(self):
        for values, words in CASES:
            with self.subTest(words=words):
                self.assertIn(words, self.refused(MINIMAL, values=values))

    def test_everything_is_said_at_once(self):
        said = self.refused(values={"replicaCount": 3, "config": {"admin": {"listen": "off"}}})
        for words in ["replicaCount over 1", "anybody in the cluster", "there is no server", "where probes cannot"]:
            self.assertIn(words, said)

    def test_a_cluster_without_the_operator_is_told_so(self):
        values = {"metrics": {"podMonitor": {"enabled": True}}}
        self.assertIn("no monitoring.coreos.com/v1", self.refused(MINIMAL, values=values, cluster=[]))
        template(MINIMAL, values={"metrics": {"podMonitor": {"enabled": True}, "disableAPICheck": True}}, cluster=[])

    def test_an_older_cluster_is_refused(self):
        self.assertIn("incompatible", self.refused(MINIMAL, cluster=["--kube-version", "1.28.0"]))

    def test_what_is_near_to_a_refusal_is_not_refused(self):
        for values in [{**REDIS, "replicaCount": 2}, {**REDIS, "autoscaling": {"enabled": True}},
                       {"terminationGracePeriodSeconds": 50}, {"config": {"listen": "0.0.0.0:8000"}},
                       {"apiKeys": {"existingSecret": ""}, "config": {"auth": {"anonymous": "acceptedFromAnywhere"}}}]:
            with self.subTest(values=values):
                template(MINIMAL, values=values)

    def test_the_values_for_several_replicas_work_with_those_of_an_installation(self):
        template(CHART / "values-ha.yaml", MINIMAL)
        self.assertTrue(VALUES)
