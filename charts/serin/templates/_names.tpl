{{- /* The name of every object of the release; cluster-wide ones have to differ between releases. */ -}}
{{- define "serin.name" -}}
{{- if contains "serin" .Release.Name }}{{ .Release.Name | trunc 52 }}{{ else }}{{ printf "%s-serin" .Release.Name | trunc 52 }}{{ end }}
{{- end }}

{{- /* The name of what belongs to no namespace. Tenants may give their releases the same name. */ -}}
{{- define "serin.clusterName" -}}
{{- if .Values.watchNamespaces }}{{ .Release.Namespace }}-{{ end }}{{ include "serin.name" . }}
{{- end }}

{{- /* The manager looks for these two policies by their names. */ -}}
{{- define "serin.holdPolicy" -}}
{{- if .Values.watchNamespaces }}{{ include "serin.clusterName" . }}{{ else }}serin{{ end }}-hold-deployments
{{- end }}

{{- define "serin.configurationPolicy" -}}
{{- if .Values.watchNamespaces }}{{ include "serin.clusterName" . }}{{ else }}serin{{ end }}-configuration
{{- end }}

{{- /* Where the binding of a policy holds: everywhere, or in the namespaces that are watched. */ -}}
{{- define "serin.watched" -}}
{{- with include "serin.watchedSelector" . }}
matchResources:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "serin.watchedSelector" -}}
{{- with .Values.watchNamespaces -}}
namespaceSelector:
  matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
{{- end }}
{{- end }}

{{- /* The API of TrafficMetrics belongs to no namespace. */ -}}
{{- define "serin.servesMetrics" -}}
{{- if and .Values.metrics.enabled .Values.clusterObjects.enabled }}true{{ end }}
{{- end }}

{{- /* Whether the manager's metrics ask for a token: "true" or "". Only a ClusterRole lets the
     manager ask whose it is. */ -}}
{{- define "serin.securesMetrics" -}}
{{- $asked := toString .Values.monitoring.secure.enabled }}
{{- if or (eq $asked "true") (and (eq $asked "auto") .Values.clusterObjects.enabled) }}true{{ end }}
{{- end }}

{{- define "serin.selector" -}}
app.kubernetes.io/name: serin
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: manager
{{- end }}

{{- define "serin.metricsSelector" -}}
app.kubernetes.io/name: serin
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: metrics
{{- end }}

{{- define "serin.dashboardSelector" -}}
app.kubernetes.io/name: serin
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: dashboard
{{- end }}

{{- define "serin.labels" -}}
app.kubernetes.io/name: serin
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "serin.image" -}}
{{ .registry }}/{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end }}

{{- define "serin.managerImage" -}}
{{- include "serin.image" (merge (dict "tag" (.Values.image.tag | default .Chart.AppVersion)) .Values.image) }}
{{- end }}

{{- define "serin.proxyImage" -}}
{{- $own := .Values.proxy.image }}
{{- include "serin.image" (merge (dict
  "registry" ($own.registry | default .Values.image.registry)
  "tag" ($own.tag | default .Values.image.tag | default .Chart.AppVersion)) $own) }}
{{- end }}

{{- /* What the manager mounts. */ -}}
{{- define "serin.managerVolumes" -}}
{{- include "serin.caVolume" . }}
{{- if .Values.tracing.enabled }}
{{- with .Values.tracing.caSecret }}
{{- if .name }}
- name: tracing-ca
  secret: {secretName: {{ .name }}, defaultMode: 0444, items: [{key: {{ .key }}, path: {{ .key }}}]}
{{- end }}
{{- end }}
{{- end }}
{{- if and (include "serin.securesMetrics" .) .Values.monitoring.secure.certificateSecret }}
- name: metrics-certificate
  secret: {secretName: {{ .Values.monitoring.secure.certificateSecret }}, defaultMode: 0444, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
{{- end }}
{{- end }}

{{- define "serin.managerMounts" -}}
{{- include "serin.caMount" . }}
{{- if and .Values.tracing.enabled .Values.tracing.caSecret.name }}
- {name: tracing-ca, mountPath: /tracing-ca, readOnly: true}
{{- end }}
{{- if and (include "serin.securesMetrics" .) .Values.monitoring.secure.certificateSecret }}
- {name: metrics-certificate, mountPath: /metrics-certificate, readOnly: true}
{{- end }}
{{- end }}

{{- /* What the metrics servers mount: one key of each, so that nothing else of a Secret
     is in their reach. */ -}}
{{- define "serin.metricsVolumes" -}}
{{- include "serin.caVolume" . }}
{{ include "serin.list" .Values.metrics.extraVolumes }}
{{- with .Values.metrics.certificate.secretName }}
- name: certificate
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- if eq .Values.metrics.source "prometheus" }}
{{- with .Values.metrics.prometheus.profileConfigMap }}
{{- if .name }}
- name: prometheus-profile
  configMap: {name: {{ .name }}, items: [{key: {{ .key }}, path: {{ .key }}}]}
{{- end }}
{{- end }}
{{- range $name, $from := dict "token" .Values.metrics.prometheus.tokenSecret "ca" .Values.metrics.prometheus.caSecret }}
{{- if $from.name }}
- name: prometheus-{{ $name }}
  secret: {secretName: {{ $from.name }}, defaultMode: 0440, items: [{key: {{ $from.key }}, path: {{ $from.key }}}]}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "serin.metricsMounts" -}}
{{- include "serin.caMount" . }}
{{ include "serin.list" .Values.metrics.extraVolumeMounts }}
{{- if .Values.metrics.certificate.secretName }}
- {name: certificate, mountPath: /certificate, readOnly: true}
{{- end }}
{{- if eq .Values.metrics.source "prometheus" }}
{{- range $mount, $from := dict "profile" "profileConfigMap" "token" "tokenSecret" "ca" "caSecret" }}
{{- if (index $.Values.metrics.prometheus $from).name }}
- {name: prometheus-{{ $mount }}, mountPath: /prometheus/{{ $mount }}, readOnly: true}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
