{{- define "inturn.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "inturn.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* What `prepare` and a part have in common: image, settings, files and rights. */ -}}
{{- define "inturn.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
env:
  {{- if not (hasKey .Values.settings "HISTORY_URL") }}
  - name: HISTORY_URL
    value: /var/lib/inturn-archive
  {{- end }}
  {{- range $name, $value := .Values.settings }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
volumeMounts:
  - name: home
    mountPath: /var/lib/inturn
  - name: tmp
    mountPath: /tmp
  {{- if not (hasKey .Values.settings "HISTORY_URL") }}
  - name: archive
    mountPath: /var/lib/inturn-archive
  {{- end }}
{{- end }}
