{{- /* The name of every object of the release; cluster-wide ones have to differ between releases. */ -}}
{{- define "serin.name" -}}
{{- if contains "serin" .Release.Name }}{{ .Release.Name | trunc 52 }}{{ else }}{{ printf "%s-serin" .Release.Name | trunc 52 }}{{ end }}
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

{{- define "serin.labels" -}}
app.kubernetes.io/name: serin
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "serin.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
