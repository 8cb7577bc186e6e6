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
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
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
  - name: STEELYARD_ENGINE
    value: {{ .Values.engine }}
  - name: STEELYARD_STATE_URL
    valueFrom:
      secretKeyRef: {name: {{ include "steelyard.secret" . }}, key: stateUrl}
  - name: STEELYARD_FRAMES_URL
    valueFrom:
      secretKeyRef: {name: {{ include "steelyard.secret" . }}, key: framesUrl}
  {{- range $name, $value := .Values.settings }}
  {{- if has $name (list "STEELYARD_STATE_URL" "STEELYARD_FRAMES_URL") }}
  {{- fail (printf "%s is in settings, whose values everyone sees who may see pods; give it as stateUrl or framesUrl, or in existingSecret." $name) }}
  {{- end }}
  {{- if has $name (list "STEELYARD_STRIPE_KEY" "STEELYARD_STRIPE_EVENTS_SECRET" "STEELYARD_SMTP_URL" "STEELYARD_OIDC_CLIENT_SECRET" "STEELYARD_API_KEY") }}
  {{- fail (printf "%s is in settings, whose values everyone sees who may see pods; name the secret that has it in secretSettings." $name) }}
  {{- end }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- range $name, $place := .Values.secretSettings }}
  - name: {{ $name }}
    valueFrom:
      secretKeyRef: {name: {{ $place.name }}, key: {{ $place.key }}}
  {{- end }}
volumeMounts:
  - {name: home, mountPath: /var/lib/steelyard}
  - {name: tmp, mountPath: /tmp}
{{ include "steelyard.restricted" . }}
{{- end -}}

{{- /* A container under the pod security standard "restricted", with a root that cannot be written. */ -}}
{{- define "steelyard.restricted" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "steelyard.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "steelyard.name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- /* The part that all pods have, given the chart's values and a component. */ -}}
{{- define "steelyard.scheduling" -}}
serviceAccountName: {{ include "steelyard.account" .root }}
automountServiceAccountToken: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
# One host or zone that fails takes few of them.
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        app.kubernetes.io/instance: {{ $.root.Release.Name }}
        app.kubernetes.io/component: {{ $.component }}
  {{- end }}
{{- end -}}

{{- /* Servers that the proxies know: with autoscaling all that there may be. */ -}}
{{- define "steelyard.mostServers" -}}
{{- if .Values.servers.autoscaling.enabled -}}
{{- max (int .Values.servers.replicas) (int .Values.servers.autoscaling.max) -}}
{{- else -}}
{{- int .Values.servers.replicas -}}
{{- end -}}
{{- end -}}

{{- define "steelyard.pod" -}}
terminationGracePeriodSeconds: 40
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
volumes:
  # A cache of models, and temporary files: nothing that must be kept.
  - name: home
    emptyDir: {}
  - name: tmp
    emptyDir: {}
{{- end -}}
