{{- define "goodput.selector" -}}
app.kubernetes.io/name: goodput
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "goodput.labels" -}}
{{ include "goodput.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "goodput.image" -}}
{{ required "image.repository is empty: the project publishes no image; build one with the Dockerfile, push it, and name it here" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The settings as JSON. */ -}}
{{- define "goodput.settings" -}}
{{- $settings := fromToml .Values.settings -}}
{{- if hasKey $settings "Error" }}{{ fail (printf "settings: this is not TOML (%s)" $settings.Error) }}{{ end -}}
{{- toJson $settings -}}
{{- end }}

{{- /* What pods of the server and of the collector have in common. */ -}}
{{- define "goodput.pod" -}}
automountServiceAccountToken: false
# a Service named goodput would add GOODPUT_ variables
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "goodput.container" -}}
image: {{ include "goodput.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
workingDir: /var/lib/goodput
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- with .Values.secrets }}
envFrom:
  {{- range . }}
  - secretRef:
      name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* The URL that browsers open, as JSON. */ -}}
{{- define "goodput.url" -}}
{{- $settings := include "goodput.settings" . | fromJson -}}
{{- $callback := dig "access" "oidc" "redirect_uri" "" $settings -}}
{{- $url := trimSuffix "/oauth2callback" $callback | default (dig "serve" "public_url" "" $settings) -}}
{{- toJson (urlParse (required "ingress: the settings name no public_url under [serve] and no redirect_uri under [access.oidc]" $url)) -}}
{{- end }}

{{- define "goodput.server" -}}
{{ include "goodput.container" . }}
env:
  - name: GOODPUT_CONFIG
    value: /etc/goodput/goodput.toml
  - name: XDG_CACHE_HOME
    value: /tmp/cache
  # workers of a build of a lake: by the limit, not by the cores of the node
  - name: PYTHON_CPU_COUNT
    valueFrom:
      resourceFieldRef:
        resource: limits.cpu
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - name: data
    mountPath: /var/lib/goodput
  - name: settings
    mountPath: /etc/goodput
    readOnly: true
  - name: tmp
    mountPath: /tmp
  {{- with .Values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
