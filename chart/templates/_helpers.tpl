{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* What the selectors of config/ select by: the same for every release, as there is one steward in a
     cluster. */}}
{{- define "steward.selectorLabels" -}}
app.kubernetes.io/name: steward
control-plane: controller-manager
{{- end }}

{{- define "steward.labels" -}}
app.kubernetes.io/name: steward
app.kubernetes.io/part-of: steward
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (replace "+" "_" .Chart.Version) }}
{{- end }}

{{- define "steward.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The text of a file that is the same as in config/, for the release's namespace. */}}
{{- define "steward.text" -}}
{{ .root.Files.Get (print "files/" .file) | replace "steward-system" .root.Release.Namespace }}
{{- end }}

{{/* One object, as a dict, with the release's labels: (dict "root" $ "object" $o) */}}
{{- define "steward.object" -}}
{{- $own := include "steward.labels" .root | fromYaml -}}
{{- $_ := set .object.metadata "labels" (merge (dict) (default (dict) .object.metadata.labels) $own) }}
---
{{ toYaml .object }}
{{- end }}

{{/* All objects of such a file: (dict "root" $ "file" "rbac.yaml") */}}
{{- define "steward.file" -}}
{{- $root := .root -}}
{{- range splitList "\n---\n" (print "\n" (include "steward.text" .) "\n") }}
{{- $object := fromYaml . }}
{{- if $object.kind }}
{{- include "steward.object" (dict "root" $root "object" $object) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether metrics are served, as text: "" or "yes".  Who may read them is asked with rights on the
     whole cluster, which a steward for some namespaces does not have. */}}
{{- define "steward.metrics" -}}
{{- if and .Values.metrics.enabled (not (and .Values.namespaces .Values.metrics.secure)) -}}yes{{- end -}}
{{- end }}

{{/* The kinds that are installed, with the CRDs of files/crds: {KIND: CRD}, as JSON. */}}
{{- define "steward.kinds" -}}
{{- $found := dict -}}
{{- if and (has "EtcdRestore" .Values.kinds) (not (has "EtcdCluster" .Values.kinds)) }}
{{- fail "kinds: EtcdRestore needs EtcdCluster, whose objects it creates: name it too" }}
{{- end }}
{{- $rules := semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version }}
{{- range $path, $_ := .Files.Glob (ternary "files/crds-1.29/*.yaml" "files/crds/*.yaml" $rules) }}
{{- $crd := $.Files.Get $path | fromYaml }}
{{- if or (not $.Values.kinds) (has $crd.spec.names.kind $.Values.kinds) }}
{{- $_ := set $found $crd.spec.names.kind $crd }}
{{- end }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{/* {"GROUP/PLURAL": true} of the kinds that are installed, as JSON. */}}
{{- define "steward.resources" -}}
{{- $found := dict -}}
{{- range $_, $crd := include "steward.kinds" . | fromJson }}
{{- $_ := set $found (print $crd.spec.group "/" $crd.spec.names.plural) true }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{/* The rules of a role with the kinds of the values, as JSON: (dict "root" $ "role" NAME) */}}
{{- define "steward.rules" -}}
{{- $root := .root -}}
{{- $role := .role -}}
{{- $rules := list -}}
{{- range $root.Values.kinds }}
{{- $rules = concat $rules (get ($root.Files.Get (printf "files/kinds/%s.yaml" .) | fromYaml) $role) | uniq }}
{{- end }}
{{- dict "rules" $rules | toJson }}
{{- end }}

{{/* The folder of a certificate that somebody else keeps, or nothing. */}}
{{- define "steward.certPath" -}}
{{- if ne .Values.certificate.mode "own" -}}/etc/steward-tls{{- end -}}
{{- end }}
