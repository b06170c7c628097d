{{/*
Names do not depend on the release: Sallyport is there once per cluster. A second release is refused by helm, because
the objects without namespace belong to the first.
*/}}

{{/* Labels of every object. Call with the root context. */}}
{{- define "sallyport.labels" -}}
app.kubernetes.io/name: sallyport
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: sallyport
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.extraLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels that tell the pods of one component; selectors use them and must never change. Call with its name. */}}
{{- define "sallyport.selector" -}}
app.kubernetes.io/name: sallyport
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* The image of every component. */}}
{{- define "sallyport.image" -}}
{{- $tagged := printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- with .Values.image.digest }}{{ printf "%s@%s" $tagged . }}{{ else }}{{ $tagged }}{{ end }}
{{- end }}

{{/*
Keys of the configuration that take effect only when the processes restart, as one value: pods carry it, so a change of
these keys rolls them out, and a change of any other key does not.
*/}}
{{- define "sallyport.restartKeys" -}}
{{- pick (.Values.config.feature | default dict) "enableIPv4" "enableIPv6" | toJson | sha256sum | trunc 16 -}}
{{- end }}

{{/* The image of a proxy. Call with the root context and the values of the image; an empty tag is the version of the chart. */}}
{{- define "sallyport.proxyImage" -}}
{{- $tagged := printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion) -}}
{{- with .image.digest }}{{ printf "%s@%s" $tagged . }}{{ else }}{{ $tagged }}{{ end }}
{{- end }}

{{/* The taint of a node whose agent is not ready yet; src/api/names.ts has the same. */}}
{{- define "sallyport.startupTaint" -}}
egressgateway.spidernet.io/agent-not-ready
{{- end }}
