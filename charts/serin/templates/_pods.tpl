{{- /* A list of the values as YAML; nothing when it is empty. */ -}}
{{- define "serin.list" -}}
{{- with . }}{{ toYaml . }}{{ end }}
{{- end }}

{{- /* How pods spread: as the values say, each constraint with the pods' own selector unless
     it has one, or else over the topology of the key where that is possible. */ -}}
{{- define "serin.spread" -}}
{{- $selector := dict "matchLabels" (fromYaml .selector) }}
{{- $constraints := .constraints | default (list (dict "maxSkew" 1 "topologyKey" .key "whenUnsatisfiable" "ScheduleAnyway")) }}
{{- $all := list }}
{{- range $constraints }}
{{- $all = append $all (merge (dict) . (dict "labelSelector" $selector)) }}
{{- end }}
{{- toYaml $all }}
{{- end }}

{{- /* Certificates of more authorities: Go reads this folder beside the image's own file. */ -}}
{{- define "serin.caEnv" -}}
{{- if or .Values.caBundle.configMap .Values.caBundle.secret }}
- name: SSL_CERT_DIR
  value: /ca-bundle
{{- end }}
{{- end }}

{{- define "serin.caMount" -}}
{{- if or .Values.caBundle.configMap .Values.caBundle.secret }}
- {name: ca-bundle, mountPath: /ca-bundle, readOnly: true}
{{- end }}
{{- end }}

{{- define "serin.caVolume" -}}
{{- with .Values.caBundle }}
{{- if .configMap }}
- name: ca-bundle
  configMap: {name: {{ .configMap }}, items: [{key: {{ .key }}, path: {{ .key }}}]}
{{- else if .secret }}
- name: ca-bundle
  secret: {secretName: {{ .secret }}, defaultMode: 0444, items: [{key: {{ .key }}, path: {{ .key }}}]}
{{- end }}
{{- end }}
{{- end }}

{{- /* How traces are exported, as OpenTelemetry names it. */ -}}
{{- define "serin.tracingEnv" -}}
{{- with .Values.tracing }}
{{- if .enabled }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .endpoint | quote }}
- name: OTEL_EXPORTER_OTLP_PROTOCOL
  value: {{ .protocol }}
- name: OTEL_TRACES_SAMPLER
  value: parentbased_traceidratio
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ .samplingRatio | quote }}
{{- with .headersSecret }}
{{- if .name }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .key }}}}
{{- end }}
{{- end }}
{{- if .caSecret.name }}
- name: OTEL_EXPORTER_OTLP_CERTIFICATE
  value: /tracing-ca/{{ .caSecret.key }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "serin.monitorLabels" -}}
{{- toYaml (merge (dict) .Values.monitoring.labels (include "serin.labels" . | fromYaml)) }}
{{- end }}

{{- /* What else the pods of proxies are to be, as the manager reads it; nothing for nothing. */ -}}
{{- define "serin.proxyPods" -}}
{{- $pods := dict }}
{{- with .Values.proxy.priorityClassName }}{{ $_ := set $pods "priorityClassName" . }}{{ end }}
{{- with .Values.proxy.nodeSelector }}{{ $_ := set $pods "nodeSelector" . }}{{ end }}
{{- with .Values.proxy.tolerations }}{{ $_ := set $pods "tolerations" . }}{{ end }}
{{- with .Values.proxy.podAnnotations }}{{ $_ := set $pods "annotations" . }}{{ end }}
{{- with $pods }}{{ toJson . }}{{ end }}
{{- end }}
