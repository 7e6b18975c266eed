{{- define "serin.ports" -}}
{{- range . }}
- {port: {{ . }}, protocol: TCP}
{{- end }}
{{- end }}

{{- define "serin.blocks" -}}
{{- range . }}
- ipBlock: {cidr: {{ . | quote }}}
{{- end }}
{{- end }}

{{- /* The port of a URL: that of its scheme where it names none, and 443 for gRPC. */ -}}
{{- define "serin.portOf" -}}
{{- $address := urlParse .url }}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $address.host) | default (ternary "443" "80" (or (eq $address.scheme "https") (eq .protocol "grpc"))) }}
{{- end }}

{{- /* Who reads the counters and confirmations of proxies. */ -}}
{{- define "serin.proxyReaders" -}}
- namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace }}}}
  podSelector:
    matchExpressions:
      - {key: app.kubernetes.io/instance, operator: In, values: [{{ .Release.Name }}]}
      - {key: app.kubernetes.io/component, operator: In, values: [manager, metrics]}
{{- with .Values.networkPolicy.metricsFrom }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What managers and metrics servers both reach. */ -}}
{{- define "serin.egress" -}}
{{ include "serin.clusterEgress" . }}
# What proxies of all namespaces serve, and what they count.
- ports:
    - {port: 15020, protocol: TCP}
  to:
    - namespaceSelector: {}
      podSelector:
        matchExpressions: [{key: serin.dev/proxy, operator: Exists}]
{{- end }}

{{- /* What every part of the operator reaches. */ -}}
{{- define "serin.clusterEgress" -}}
# Names. A cache of the node has an address that no selector of pods finds.
- ports:
    {{- range .Values.networkPolicy.dnsPorts }}
    - {port: {{ . }}, protocol: UDP}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
# The API server.
- ports:
    {{- include "serin.ports" .Values.networkPolicy.apiServer.ports | nindent 4 }}
  {{- with .Values.networkPolicy.apiServer.cidrs }}
  to:
    {{- include "serin.blocks" . | nindent 4 }}
  {{- end }}
{{- end }}
