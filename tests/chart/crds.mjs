// Checks custom resources, a JSON list on stdin, against their schemas; says how many there were.
import { readFileSync } from "node:fs";
import { HTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1";
import { PodMonitor, PrometheusRule, ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";

const kinds = { HTTPRoute, PodMonitor, PrometheusRule, ServiceMonitor };
const found = JSON.parse(readFileSync(0, "utf8"));
for (const each of found) {
  new kinds[each.kind](each).validate();
}
console.log(found.length);
