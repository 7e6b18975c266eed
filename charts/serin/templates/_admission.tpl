{{- /* What changes writes before they are stored: policies, policies-v1beta1 or webhook. Where
     nothing is to be changed, no policy is rendered and no webhook served. */ -}}
{{- define "serin.admissionMode" -}}
{{- if not (and .Values.clusterObjects.enabled (or .Values.holdPolicy.enabled .Values.selectorPolicy.enabled .Values.decisionPolicy.enabled .Values.configuration.enabled)) }}policies
{{- else if ne .Values.admission.mode "auto" }}{{ .Values.admission.mode }}
{{- else if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}policies
{{- else if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy" }}policies-v1beta1
{{- else }}webhook
{{- end }}
{{- end }}

{{- /* The version of the policies. */ -}}
{{- define "serin.policyVersion" -}}
admissionregistration.k8s.io/{{ ternary "v1beta1" "v1" (eq (include "serin.admissionMode" .) "policies-v1beta1") }}
{{- end }}

{{- /* Whether policies are rendered that the value of .enabled asks for: "true" or "". */ -}}
{{- define "serin.hasPolicies" -}}
{{- if ne (include "serin.admissionMode" .) "webhook" }}true{{ end }}
{{- end }}

{{- /* Whether the managers serve webhooks: "true" or "". */ -}}
{{- define "serin.hasWebhooks" -}}
{{- if eq (include "serin.admissionMode" .) "webhook" }}true{{ end }}
{{- end }}

{{- define "serin.managerUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "serin.name" . }}
{{- end }}

{{- /* Which writes each rule is about: nothing else is evaluated, or ever waits for a webhook. */ -}}
{{- define "serin.holdConditions" -}}
- name: managed
  expression: >-
    has(object.metadata.annotations) && 'serin.dev/rollout' in object.metadata.annotations ||
    has(oldObject.metadata.annotations) && 'serin.dev/rollout' in oldObject.metadata.annotations
- name: template-changed-or-paused
  expression: >-
    object.spec.template != oldObject.spec.template ||
    has(oldObject.spec.paused) && oldObject.spec.paused && request.userInfo.username != '{{ include "serin.managerUser" . }}' &&
    !(has(object.metadata.annotations) && 'serin.dev/resume' in object.metadata.annotations && object.metadata.annotations['serin.dev/resume'] == 'true')
- name: not-held-by-itself
  expression: >-
    !(has(object.spec.paused) && object.spec.paused && has(object.metadata.annotations) && 'serin.dev/rollout' in object.metadata.annotations)
{{- end }}

{{- /* The schema has not been checked yet: what is no object is left for it to refuse. */ -}}
{{- define "serin.signConditions" -}}
- name: control-differs
  expression: >-
    has(object.spec) && type(object.spec) == map && has(object.spec.control) && type(object.spec.control) == map &&
    (oldObject == null || !has(oldObject.spec.control) || object.spec.control != oldObject.spec.control)
{{- end }}

{{- define "serin.keepConditions" -}}
- name: in-a-split
  expression: >-
    has(oldObject.spec.selector) && has(object.spec.selector) && ('serin.dev/proxy' in oldObject.spec.selector ||
    has(oldObject.metadata.annotations) && 'serin.dev/pin' in oldObject.metadata.annotations)
- name: by-another-actor
  expression: "!(has(request.options.fieldManager) && request.options.fieldManager == 'serin-trafficsplit')"
{{- end }}

{{- define "serin.configureConditions" -}}
- name: has-copies
  expression: "has(object.metadata.annotations) && 'serin.dev/configuration' in object.metadata.annotations"
{{- end }}

{{- /* A certificate of the webhooks that another program makes. */ -}}
{{- define "serin.webhookVolume" -}}
{{- if and (include "serin.hasWebhooks" .) .Values.admission.webhook.certificate.secretName }}
- name: webhook-certificate
  secret: {secretName: {{ .Values.admission.webhook.certificate.secretName }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- define "serin.webhookMount" -}}
{{- if and (include "serin.hasWebhooks" .) .Values.admission.webhook.certificate.secretName }}
- {name: webhook-certificate, mountPath: /webhook-certificate, readOnly: true}
{{- end }}
{{- end }}
