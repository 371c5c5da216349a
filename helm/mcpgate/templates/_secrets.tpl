{{/* Secrets as files under /etc/mcpgate/secrets. */}}

{{/* The volumes by the name of their folder, as YAML. Readable for the group of the pod only. */}}
{{- define "mcpgate.mountedSecrets" -}}
{{- $volumes := dict -}}
{{- $values := .Values -}}
{{- range $name, $secret := $values.secrets -}}
{{- $_ := set $volumes $name (include "mcpgate.secretVolume" (list $secret.existingSecret $secret.items) | fromYaml) -}}
{{- end -}}
{{- with $values.apiKeys.existingSecret -}}
{{- $_ := set $volumes "api-keys" (include "mcpgate.secretVolume" (list . (list $values.apiKeys.key)) | fromYaml) -}}
{{- end -}}
{{- with $values.cluster.existingSecret -}}
{{- $_ := set $volumes "cluster" (include "mcpgate.secretVolume" (list . (list $values.cluster.key)) | fromYaml) -}}
{{- end -}}
{{- if and $values.redis.existingSecret $values.redis.passwordKey -}}
{{- $_ := set $volumes "redis" (include "mcpgate.secretVolume" (list $values.redis.existingSecret (list $values.redis.passwordKey)) | fromYaml) -}}
{{- end -}}
{{- with $values.redis.sentinel.existingSecret -}}
{{- $_ := set $volumes "redis-sentinel" (include "mcpgate.secretVolume" (list . (list $values.redis.sentinel.passwordKey)) | fromYaml) -}}
{{- end -}}
{{- with $values.redis.tls.existingSecret -}}
{{- $_ := set $volumes "redis-ca" (include "mcpgate.secretVolume" (list . (list $values.redis.tls.caKey)) | fromYaml) -}}
{{- end -}}
{{- with $values.redis.tls.existingConfigMap -}}
{{- $item := dict "key" $values.redis.tls.caKey "path" $values.redis.tls.caKey -}}
{{- $_ := set $volumes "redis-ca" (dict "configMap" (dict "name" . "items" (list $item))) -}}
{{- end -}}
{{- range $name, $_ := $values.stdioServers -}}
{{- $secret := include "mcpgate.stdioSecretName" (dict "root" $ "name" $name) -}}
{{- $_ := set $volumes (printf "stdio-%s" $name) (include "mcpgate.secretVolume" (list $secret (list "api-key")) | fromYaml) -}}
{{- end -}}
{{- toYaml $volumes -}}
{{- end -}}

{{/* The volume of ( a Secret, the keys of it ). */}}
{{- define "mcpgate.secretVolume" -}}
{{- $secret := dict "secretName" (first .) "defaultMode" 288 -}}
{{- $items := list -}}
{{- range last . -}}{{- $items = append $items (dict "key" . "path" .) -}}{{- end -}}
{{- if $items -}}{{- $_ := set $secret "items" $items -}}{{- end -}}
{{- dict "secret" $secret | toYaml -}}
{{- end -}}
