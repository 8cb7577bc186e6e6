{{- define "steelyard.name" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "steelyard.labels" -}}
app.kubernetes.io/name: steelyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "steelyard.secret" -}}
{{- .Values.existingSecret | default (printf "%s-stores" (include "steelyard.name" .)) -}}
{{- end -}}

{{- define "steelyard.container" -}}
image: {{ printf "%s:%s" .Values.image.repository .Values.image.tag | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  - name: STEELYARD_ACCOUNTS
    value: "on"
  - name: STEELYARD_HOST
    value: 0.0.0.0
  - name: STEELYARD_JOBS
    value: "off"
  # The proxy asks each server once a second whether it takes requests.
  - name: STEELYARD_LEAVING_S
    value: "5"
  # Pods are of private networks, and of the pods the proxy alone may call: see the NetworkPolicy.
  - name: STEELYARD_TRUSTED_PROXIES
    value: 10.0.0.0/8,100.64.0.0/10,172.16.0.0/12,192.168.0.0/16,fc00::/7
  - name: STEELYARD_STATE_URL
    valueFrom:
      secretKeyRef: {name: {{ include "steelyard.secret" . }}, key: stateUrl}
  - name: STEELYARD_FRAMES_URL
    valueFrom:
      secretKeyRef: {name: {{ include "steelyard.secret" . }}, key: framesUrl}
  {{- range $name, $value := .Values.settings }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
volumeMounts:
  - {name: home, mountPath: /var/lib/steelyard}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "steelyard.pod" -}}
terminationGracePeriodSeconds: 40
securityContext: {runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001}
volumes:
  # Temporary files and a cache of models: nothing that must be kept.
  - name: home
    emptyDir: {}
{{- end -}}
