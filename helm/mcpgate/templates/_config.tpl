{{/* The config file: what the chart adds, and over it what the operator wrote. */}}

{{/* "true" if this version of the program reads `include`. */}}
{{- define "mcpgate.readsInclude" -}}true{{- end -}}

{{/* "true" if sessions live in Redis. */}}
{{- define "mcpgate.redis" -}}
{{- $redis := .Values.redis -}}
{{- $store := .Values.config.store -}}
{{- if or $redis.url $redis.urlKey $redis.nodes $redis.sentinel.master (and (kindIs "map" $store) (hasKey $store "redis")) -}}true{{- end -}}
{{- end -}}

{{- define "mcpgate.storeConfig" -}}
{{- $redis := .Values.redis -}}
{{- $secrets := "/etc/mcpgate/secrets" -}}
redis:
  {{- if $redis.urlKey }}
  url: ${MCPGATE_REDIS_URL}
  {{- else if $redis.url }}
  url: {{ $redis.url | quote }}
  {{- else if $redis.nodes }}
  nodes: {{ toJson $redis.nodes }}
  {{- else }}
  sentinel:
    master: {{ $redis.sentinel.master | quote }}
    urls: {{ toJson $redis.sentinel.urls }}
    {{- with $redis.sentinel.username }}
    username: {{ . | quote }}
    {{- end }}
    {{- if $redis.sentinel.existingSecret }}
    password: { file: {{ $secrets }}/redis-sentinel/{{ $redis.sentinel.passwordKey }} }
    {{- end }}
    {{- if not (kindIs "invalid" $redis.sentinel.tls) }}
    tls: {{ $redis.sentinel.tls }}
    {{- end }}
  {{- end }}
  {{- with $redis.username }}
  username: {{ . | quote }}
  {{- end }}
  {{- if and $redis.existingSecret $redis.passwordKey }}
  password: { file: {{ $secrets }}/redis/{{ $redis.passwordKey }} }
  {{- end }}
  {{- if or $redis.tls.existingSecret $redis.tls.existingConfigMap }}
  ca: {{ $secrets }}/redis-ca/{{ $redis.tls.caKey }}
  {{- end }}
  prefix: {{ $redis.prefix | quote }}
  timeout: {{ $redis.timeout | quote }}
{{- end -}}

{{/* What the chart adds, as a mapping. */}}
{{- define "mcpgate.addedConfig" -}}
listen: 0.0.0.0:8080
admin: { listen: "0.0.0.0:9090" }
shutdown: { delay: 5s, drain: 30s, children: 10s }
stateDir: /var/lib/mcpgate
{{- if .Values.apiKeys.existingSecret }}
auth:
  apiKeys: { file: /etc/mcpgate/secrets/api-keys/{{ .Values.apiKeys.key }} }
{{- end }}
{{- if include "mcpgate.redis" . }}
{{- if not .Values.config.store }}
store:
  {{- include "mcpgate.storeConfig" . | nindent 2 }}
{{- end }}
cluster:
  listen: {{ printf "0.0.0.0:%v" .Values.cluster.port }}
  advertise: {{ printf "${POD_IP}:%v" .Values.cluster.port | quote }}
  {{- if .Values.cluster.existingSecret }}
  keys: { file: /etc/mcpgate/secrets/cluster/{{ .Values.cluster.key }} }
  {{- end }}
  lease: {{ .Values.cluster.lease }}
{{- end }}
{{- if .Values.configMaps }}
include: [/etc/mcpgate/conf.d/*/*.yaml]
{{- end }}
{{- if .Values.stdioServers }}
mcpServers:
  {{- range $name, $_ := .Values.stdioServers }}
  {{ $name }}:
    {{- include "mcpgate.stdioEntry" (dict "root" $ "name" $name) | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The whole config, as YAML. */}}
{{- define "mcpgate.config" -}}
{{- $added := include "mcpgate.addedConfig" . | fromYaml -}}
{{- if hasKey $added "Error" -}}{{- fail $added.Error -}}{{- end -}}
{{- mergeOverwrite $added (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{/* The port at the end of an address. */}}
{{- define "mcpgate.port" -}}
{{- regexFind "[0-9]+$" (toString .) -}}
{{- end -}}

{{/* "true" for 127.0.0.1:8080 and [::1]:8080. */}}
{{- define "mcpgate.isLoopback" -}}
{{- if regexMatch "^(127\\.|\\[::1\\])" (toString .) -}}true{{- end -}}
{{- end -}}

{{/* Milliseconds of a duration such as 1h30m or 200ms. */}}
{{- define "mcpgate.milliseconds" -}}
{{- $text := toString . -}}
{{- if not (regexMatch "^\\s*([0-9]+\\s*(ms|d|h|m|s)\\s*)+$" $text) -}}
{{- fail (printf "%q under config.shutdown is no duration: write one such as 30s or 1m30s" $text) -}}
{{- end -}}
{{- $units := dict "d" 86400000 "h" 3600000 "m" 60000 "s" 1000 "ms" 1 -}}
{{- $total := 0 -}}
{{- range regexFindAll "[0-9]+\\s*(ms|d|h|m|s)" $text -1 -}}
{{- $total = add $total (mul (regexFind "^[0-9]+" . | int64) (get $units (regexFind "[a-z]+$" .))) -}}
{{- end -}}
{{- $total -}}
{{- end -}}

{{/* Seconds from SIGTERM to SIGKILL for this `shutdown`: delay + drain + children + 5 s, rounded up. */}}
{{- define "mcpgate.graceOf" -}}
{{- $sum := 0 -}}
{{- range list "delay" "drain" "children" -}}
{{- $sum = add $sum (include "mcpgate.milliseconds" (get $ .) | int64) -}}
{{- end -}}
{{- add (div (add $sum 999) 1000) 5 -}}
{{- end -}}

{{- define "mcpgate.gracePeriod" -}}
{{- if not (kindIs "invalid" .Values.terminationGracePeriodSeconds) -}}
{{- int64 .Values.terminationGracePeriodSeconds -}}
{{- else -}}
{{- $shutdown := (include "mcpgate.config" . | fromYaml).shutdown -}}
{{- add (include "mcpgate.graceOf" $shutdown | int64) (default 0 .Values.preStopSleep | int64) -}}
{{- end -}}
{{- end -}}

{{/* The part of the config that counts only at a start (docs/operations.md, Changing the config). */}}
{{- define "mcpgate.startConfig" -}}
{{- $config := include "mcpgate.config" . | fromYaml -}}
{{- pick $config "listen" "admin" "publicUrl" "store" "cluster" "sessions" "streams" "limits" "shutdown" "stateDir" | toYaml -}}
{{- end -}}

{{/* The ports at which Redis is reached, as a YAML list. */}}
{{- define "mcpgate.redisPorts" -}}
{{- $redis := .Values.redis -}}
{{- $ports := list -}}
{{- if $redis.port -}}{{- $ports = append $ports (int $redis.port) -}}{{- end -}}
{{- range concat (list $redis.url) $redis.nodes -}}
{{- $port := regexFind ":[0-9]+(/|$)" . | trimPrefix ":" | trimSuffix "/" -}}
{{- if and . (not $redis.port) -}}{{- $ports = append $ports (int (default "6379" $port)) -}}{{- end -}}
{{- end -}}
{{- range $redis.sentinel.urls -}}
{{- $port := regexFind ":[0-9]+(/|$)" . | trimPrefix ":" | trimSuffix "/" -}}
{{- $ports = append $ports (int (default "26379" $port)) -}}
{{- end -}}
{{- /* The master that the Sentinels name, or a URL that the chart does not see. */ -}}
{{- if and (not $redis.port) (or $redis.sentinel.urls (not $ports)) -}}{{- $ports = append $ports 6379 -}}{{- end -}}
{{- $ports | uniq | toYaml -}}
{{- end -}}
