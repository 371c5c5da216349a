{{/* stdio servers in pods of their own. Each of these takes { root, name }. */}}

{{/* The server with what it did not say, as YAML. */}}
{{- define "mcpgate.stdioServer" -}}
{{- $server := mergeOverwrite (deepCopy .root.Values.stdioServerDefaults) (deepCopy (default dict (get .root.Values.stdioServers .name))) -}}
{{- range list "image" "command" -}}
{{- if not (get $server .) -}}
{{- fail (printf "stdioServers.%s.%s is missing" $.name .) -}}
{{- end -}}
{{- end -}}
{{- toYaml $server -}}
{{- end -}}

{{- define "mcpgate.stdioName" -}}
{{- printf "%s-%s" (include "mcpgate.fullname" .root) .name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "mcpgate.stdioSelectorLabels" -}}
app.kubernetes.io/name: {{ include "mcpgate.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: stdio-server
mcpgate/server: {{ .name }}
{{- end -}}

{{- define "mcpgate.stdioLabels" -}}
{{ include "mcpgate.stdioSelectorLabels" . }}
{{ include "mcpgate.commonLabels" .root }}
{{- end -}}

{{/* The Secret with the key by which the gateway comes in. */}}
{{- define "mcpgate.stdioSecretName" -}}
{{- $server := include "mcpgate.stdioServer" . | fromYaml -}}
{{- default (include "mcpgate.stdioName" .) $server.existingSecret -}}
{{- end -}}

{{/*
Its entry in the gateway's mcpServers. The era is the one with sessions: each session of the gateway then has a
session, and so a child, of its own there. Stateless requests would all come from one principal, the gateway, and
share a child between tenants.
*/}}
{{- define "mcpgate.stdioEntry" -}}
{{- $server := include "mcpgate.stdioServer" . | fromYaml -}}
{{- $entry := dict
  "url" (printf "http://%s.%s.svc:8080/servers/%s/mcp" (include "mcpgate.stdioName" .) (include "mcpgate.namespace" .root) .name)
  "headers" (dict "X-API-Key" (dict "file" (printf "/etc/mcpgate/secrets/stdio-%s/api-key" .name)))
  "protocol" "2025-11-25"
  "isolation" "session" -}}
{{- mergeOverwrite $entry (deepCopy $server.server) | toYaml -}}
{{- end -}}

{{/* The config in its own pod. */}}
{{- define "mcpgate.stdioConfig" -}}
{{- $server := include "mcpgate.stdioServer" . | fromYaml -}}
{{- /* What is written goes to the server as it is: in its pod there is no variable to put in for ${NAME}. */ -}}
{{- $env := dict -}}
{{- range $name, $value := $server.env -}}
{{- $_ := set $env $name (replace "${" "$${" (toString $value)) -}}
{{- end -}}
{{- range $name, $_ := $server.envFrom -}}
{{- $_ := set $env $name (dict "file" (printf "/etc/mcpgate/env/%s/value" $name)) -}}
{{- end -}}
{{- $args := list -}}
{{- range $server.args -}}{{- $args = append $args (replace "${" "$${" (toString .)) -}}{{- end -}}
{{- $entry := dict "command" (replace "${" "$${" $server.command) "args" $args "env" $env "isolation" "session" "pool" (dict "max" $server.maxSessions) -}}
{{- if $server.cwd -}}{{- $_ := set $entry "cwd" (replace "${" "$${" $server.cwd) -}}{{- end -}}
{{- with $server.server.timeouts -}}{{- $_ := set $entry "timeouts" . -}}{{- end -}}
{{- with $server.server.maxMessage -}}{{- $_ := set $entry "maxMessage" . -}}{{- end -}}
listen: 0.0.0.0:8080
admin: { listen: "0.0.0.0:9090" }
auth:
  anonymous: never
  apiKeys: { file: /etc/mcpgate/key/keys.yaml }
# The gateway is one principal, with all its sessions.
sessions: { max: {{ $server.maxSessions }}, maxPerPrincipal: {{ $server.maxSessions }} }
shutdown: { delay: 5s, drain: 30s, children: 10s }
stateDir: /tmp/state
mcpServers:
  {{ .name }}:
    {{- toYaml $entry | nindent 4 }}
{{- end -}}
