{{- /* A role of the manager with its bindings: in every namespace, or with watchNamespaces in each
     of these; with namespaces in no others than those. An unbound one is bound by the manager.
     In a watched namespace the manager's own has the same name for every release, so that Helm
     refuses the second release that would watch it. */ -}}
{{- define "serin.role" -}}
{{- $root := .root }}
{{- $role := printf "%s-%s" (include "serin.name" .root) .name }}
{{- $namespaces := .namespaces | default $root.Values.watchNamespaces }}
{{- if not $namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $role }}
  labels:
    {{- include "serin.labels" $root | nindent 4 }}
{{- .rules }}
{{- if not .unbound }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $role }}
  labels:
    {{- include "serin.labels" $root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $role }}}
subjects:
  - {kind: ServiceAccount, name: {{ include "serin.name" $root }}, namespace: {{ $root.Release.Namespace }}}
{{- end }}
{{- end }}
{{- range $namespaces }}
{{- $role := eq $.name "manager" | ternary "serin-manager" $role }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $role }}
  namespace: {{ . }}
  labels:
    {{- include "serin.labels" $root | nindent 4 }}
{{- $.rules }}
{{- if not $.unbound }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $role }}
  namespace: {{ . }}
  labels:
    {{- include "serin.labels" $root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $role }}}
subjects:
  - {kind: ServiceAccount, name: {{ include "serin.name" $root }}, namespace: {{ $root.Release.Namespace }}}
{{- end }}
{{- end }}
{{- end }}
