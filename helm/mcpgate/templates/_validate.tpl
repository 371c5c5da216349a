{{/* Refuses what could not work, all of it at once, each with what to do. */}}

{{- define "mcpgate.validate" -}}
{{- $wrong := list -}}
{{- $values := .Values -}}
{{- $redis := include "mcpgate.redis" . -}}
{{- $several := or (gt (int $values.replicaCount) 1) $values.autoscaling.enabled -}}

{{- /* Several replicas. */ -}}
{{- if and $several (not $redis) -}}
{{- $wrong = append $wrong "replicaCount over 1 and autoscaling need a store that replicas share: set redis.url (or nodes, sentinel, urlKey) and cluster.existingSecret" -}}
{{- end -}}
{{- $ways := 0 -}}
{{- range list $values.redis.url $values.redis.urlKey $values.redis.nodes $values.redis.sentinel.master -}}
{{- if . -}}{{- $ways = add1 $ways -}}{{- end -}}
{{- end -}}
{{- if gt (int $ways) 1 -}}
{{- $wrong = append $wrong "redis has several of url, urlKey, nodes and sentinel.master: keep one" -}}
{{- end -}}
{{- if and $values.redis.sentinel.master (not $values.redis.sentinel.urls) -}}
{{- $wrong = append $wrong "redis.sentinel.master needs redis.sentinel.urls: the addresses of the Sentinels" -}}
{{- end -}}
{{- if and $values.redis.sentinel.urls (not $values.redis.sentinel.master) -}}
{{- $wrong = append $wrong "redis.sentinel.urls needs redis.sentinel.master: the name of the master" -}}
{{- end -}}
{{- if and $values.redis.urlKey (not $values.redis.existingSecret) -}}
{{- $wrong = append $wrong "redis.urlKey is a key of redis.existingSecret, which is not set" -}}
{{- end -}}
{{- if and $values.redis.existingSecret (eq (int $ways) 0) -}}
{{- $wrong = append $wrong "redis.existingSecret is set, but nothing says where Redis is: set redis.url, urlKey, nodes or sentinel" -}}
{{- end -}}
{{- if and $values.redis.tls.existingSecret $values.redis.tls.existingConfigMap -}}
{{- $wrong = append $wrong "redis.tls has both existingSecret and existingConfigMap: keep one" -}}
{{- end -}}
{{- range concat (list $values.redis.url) $values.redis.nodes $values.redis.sentinel.urls -}}
{{- if regexMatch "://[^/]*@" . -}}
{{- $wrong = append $wrong "an address under redis has a user or password in it: use redis.username and redis.existingSecret" -}}
{{- end -}}
{{- end -}}
{{- if and $redis (not $values.cluster.existingSecret) (not (dig "cluster" "keys" "" $values.config)) -}}
{{- $wrong = append $wrong "redis needs cluster.existingSecret: a Secret whose key `cluster-keys` holds 32 random bytes in base64 (head -c 32 /dev/urandom | base64)" -}}
{{- end -}}

{{- /* Config. */ -}}
{{- if and $values.existingConfigMap (or $values.config $values.stdioServers $values.configMaps) -}}
{{- $wrong = append $wrong "existingConfigMap holds the whole config: config, configMaps and stdioServers have no effect beside it; keep one of them" -}}
{{- end -}}
{{- if and $values.configMaps (not (include "mcpgate.readsInclude" .)) -}}
{{- $wrong = append $wrong (printf "configMaps needs a version of mcpgate that reads `include`, and %s does not: write everything under config" .Chart.AppVersion) -}}
{{- end -}}
{{- range $name, $_ := $values.stdioServers -}}
{{- if hasKey (default dict $values.config.mcpServers) $name -}}
{{- $wrong = append $wrong (printf "server %q is under both stdioServers and config.mcpServers: keep one, and write keys such as timeouts under stdioServers.%s.server" $name $name) -}}
{{- end -}}
{{- end -}}
{{- if not $values.existingConfigMap -}}
{{- $config := include "mcpgate.config" . | fromYaml -}}
{{- $auth := default dict $config.auth -}}
{{- $wayIn := or $auth.apiKeys $auth.jwt -}}
{{- if include "mcpgate.isLoopback" $config.listen -}}
{{- $wrong = append $wrong (printf "config.listen is %s, where the Service cannot reach it: leave it out, or write 0.0.0.0:8080" $config.listen) -}}
{{- else if not (or $wayIn (eq (default "loopback" $auth.anonymous) "acceptedFromAnywhere")) -}}
{{- $wrong = append $wrong "anybody in the cluster could call: set apiKeys.existingSecret or config.auth.jwt; or say config.auth.anonymous: acceptedFromAnywhere" -}}
{{- end -}}
{{- if and (eq (default "" $auth.anonymous) "never") (not $wayIn) -}}
{{- $wrong = append $wrong "config.auth.anonymous says never, and there is no other way in: set apiKeys.existingSecret or config.auth.jwt" -}}
{{- end -}}
{{- if and $auth.jwt (not $config.publicUrl) -}}
{{- $wrong = append $wrong "config.auth.jwt needs config.publicUrl: what callers type, such as https://mcp.example.com" -}}
{{- end -}}
{{- $admin := toString (default dict $config.admin).listen -}}
{{- if or (eq $admin "off") (include "mcpgate.isLoopback" $admin) -}}
{{- $wrong = append $wrong (printf "config.admin.listen is %s, where probes cannot reach it: leave it out, or write 0.0.0.0:9090" $admin) -}}
{{- end -}}
{{- if not (or $config.mcpServers $values.configMaps) -}}
{{- $wrong = append $wrong "there is no server: write one under config.mcpServers or stdioServers" -}}
{{- end -}}
{{- if and (eq (toString $config.store) "memory") $several -}}
{{- $wrong = append $wrong "config.store is memory, which replicas do not share: leave it out" -}}
{{- end -}}
{{- if and (not (kindIs "invalid" $values.terminationGracePeriodSeconds)) (lt (int64 $values.terminationGracePeriodSeconds) (add (include "mcpgate.graceOf" $config.shutdown | int64) (default 0 $values.preStopSleep | int64))) -}}
{{- $wrong = append $wrong (printf "terminationGracePeriodSeconds is %v, less than config.shutdown takes (%s s): calls would be cut; leave it out" $values.terminationGracePeriodSeconds (include "mcpgate.graceOf" $config.shutdown)) -}}
{{- end -}}
{{- end -}}
{{- if and $values.stateClaim $several -}}
{{- $wrong = append $wrong "stateClaim is for a single replica: each has a state directory of its own" -}}
{{- end -}}
{{- range $name, $secret := $values.secrets -}}
{{- if has $name (list "api-keys" "redis" "redis-ca" "redis-sentinel" "cluster") -}}
{{- $wrong = append $wrong (printf "secrets.%s has a name that the chart uses itself: choose another" $name) -}}
{{- end -}}
{{- if hasPrefix "stdio-" $name -}}
{{- $wrong = append $wrong (printf "secrets.%s begins with stdio-, which the chart uses itself: choose another" $name) -}}
{{- end -}}
{{- end -}}
{{- if and (hasKey $values.secrets "api-keys") $values.apiKeys.existingSecret -}}
{{- $wrong = append $wrong "secrets.api-keys is where apiKeys.existingSecret is mounted: choose another name" -}}
{{- end -}}

{{- /* Kubernetes. */ -}}
{{- if and $values.metrics.serviceMonitor.enabled $values.metrics.podMonitor.enabled -}}
{{- $wrong = append $wrong "metrics has both serviceMonitor and podMonitor: everything would be scraped twice; keep one" -}}
{{- end -}}
{{- if and $values.metrics.serviceMonitor.enabled (not $values.metrics.service.enabled) -}}
{{- $wrong = append $wrong "metrics.serviceMonitor needs metrics.service.enabled" -}}
{{- end -}}
{{- $monitoring := or $values.metrics.serviceMonitor.enabled $values.metrics.podMonitor.enabled $values.metrics.prometheusRule.enabled -}}
{{- if and $monitoring (not $values.metrics.disableAPICheck) (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
{{- $wrong = append $wrong "this cluster has no monitoring.coreos.com/v1: install the Prometheus operator, or set metrics.disableAPICheck" -}}
{{- end -}}
{{- if and $values.httpRoute.enabled (not $values.httpRoute.parentRefs) -}}
{{- $wrong = append $wrong "httpRoute needs parentRefs: the Gateway it belongs to" -}}
{{- end -}}
{{- if and $values.podDisruptionBudget.minAvailable (not (kindIs "invalid" $values.podDisruptionBudget.maxUnavailable)) -}}
{{- $wrong = append $wrong "podDisruptionBudget has both minAvailable and maxUnavailable: set maxUnavailable to null" -}}
{{- end -}}
{{- if and $values.autoscaling.enabled (gt (int $values.autoscaling.minReplicas) (int $values.autoscaling.maxReplicas)) -}}
{{- $wrong = append $wrong "autoscaling.minReplicas is more than maxReplicas" -}}
{{- end -}}
{{- if and $values.autoscaling.enabled (not (or $values.autoscaling.targetCPUUtilizationPercentage $values.autoscaling.targetSessions $values.autoscaling.targetStreams $values.autoscaling.metrics)) -}}
{{- $wrong = append $wrong "autoscaling has no target: set targetCPUUtilizationPercentage, targetSessions, targetStreams or metrics" -}}
{{- end -}}
{{- if and $values.autoscaling.enabled $values.autoscaling.targetCPUUtilizationPercentage (not (dig "requests" "cpu" "" $values.resources)) -}}
{{- $wrong = append $wrong "autoscaling by processor use needs resources.requests.cpu" -}}
{{- end -}}

{{- if $wrong -}}
{{- fail (printf "\n\nmcpgate cannot be installed like this:\n- %s\n" (join "\n- " (uniq $wrong))) -}}
{{- end -}}
{{- end -}}
