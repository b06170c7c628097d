{{/*
Values files of egressgateway 0.6. Every template begins with a call of "sallyport.adopt", which puts what such a file says into
our own values, as files/egressgateway-values.yaml tells; so all other templates know one set of values.
*/}}

{{/*
Call with the root context; prints nothing. Where a file has a key of both charts, the key of egressgateway wins: ours always has
a value, and nobody could tell whether the user has given it.
*/}}
{{- define "sallyport.adopt" -}}
{{- if not (hasKey .Values "adopted") -}}
  {{- $values := .Values -}}
  {{- $_ := set $values "adopted" true -}}
  {{- $table := .Files.Get "files/egressgateway-values.yaml" | fromYaml -}}
  {{- range $from, $to := $table.applied -}}
    {{- $found := dict -}}
    {{- include "sallyport.find" (list $values $from $found) -}}
    {{- if hasKey $found "value" -}}
      {{- $value := $found.value -}}
      {{- if hasSuffix ".logLevel" $from -}}
        {{- /* Two levels that we do not have. */ -}}
        {{- $value = get (dict "fatal" "error" "panic" "error") $value | default $value -}}
      {{- else if and (kindIs "string" $value) (has $from (list "feature.vxlan.id" "feature.vxlan.port")) -}}
        {{- $value = int $value -}}
      {{- end -}}
      {{- $place := $values -}}
      {{- $path := splitList "." $to -}}
      {{- range initial $path -}}
        {{- if not (kindIs "map" (get $place .)) -}}{{- $_ := set $place . dict -}}{{- end -}}
        {{- $place = get $place . -}}
      {{- end -}}
      {{- $_ := set $place (last $path) $value -}}
    {{- end -}}
  {{- end -}}
  {{- range list "agent.image.imagePullSecrets" "controller.image.imagePullSecrets" -}}
    {{- $found := dict -}}
    {{- include "sallyport.find" (list $values . $found) -}}
    {{- $_ := set $values "imagePullSecrets" (concat ($values.imagePullSecrets | default list) ($found.value | default list) | uniq) -}}
  {{- end -}}
  {{- $override := dict -}}
  {{- include "sallyport.find" (list $values "global.imageRegistryOverride" $override) -}}
  {{- with $override.value -}}
    {{- $registry := . -}}
    {{- range concat (list $values.image) (values $values.operator.images) -}}
      {{- /* As container runtimes see it: what stands before the first slash is a registry if it has a dot or a port. */ -}}
      {{- $_ := set . "repository" (printf "%s/%s" $registry (regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" .repository "")) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end }}

{{/* Looks a value up by its path. Call with a list: the values, a path such as feature.vxlan.id, a dict that gets the key "value" if there is one. */}}
{{- define "sallyport.find" -}}
{{- $result := last . -}}
{{- $path := splitList "." (index . 1) -}}
{{- $place := first . -}}
{{- range initial $path -}}
  {{- $place = ternary (get $place .) dict (kindIs "map" (get $place .)) -}}
{{- end -}}
{{- if hasKey $place (last $path) -}}{{- $_ := set $result "value" (get $place (last $path)) -}}{{- end -}}
{{- end }}
