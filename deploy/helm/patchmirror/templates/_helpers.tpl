{{- define "patchmirror.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "patchmirror.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "patchmirror.labels" -}}
{{ include "patchmirror.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "patchmirror.scheme" -}}
{{- if hasPrefix "unix:" (dig "server" "listen" "" .Values.settings) -}}
{{- fail "settings.server.listen: the Service and the probes need a port" -}}
{{- end -}}
{{- if dig "server" "certFile" "" .Values.settings -}}https{{- else -}}http{{- end -}}
{{- end -}}
