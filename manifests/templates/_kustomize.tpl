{{/* A file of base/ or components/, with the names that the values give. */}}
{{- define "clrk-apiserver.text" -}}
{{- $text := .root.Files.Get .file | required (printf "there is no file %s" .file) -}}
{{- $values := .root.Values -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $text
  | replace "clrk-system" $namespace
  | replace (printf "https://etcd.%s.svc:2379" $namespace) (join "," $values.etcd.servers)
  | replace "clrk-apiserver-etcd" $values.etcd.secretName
  | replace "clrk-apiserver-serving" $values.certificate.secretName -}}
{{- end -}}

{{/* The components that the values ask for: a JSON list. */}}
{{- define "clrk-apiserver.components" -}}
{{- $several := gt (int .Values.replicas) 1 -}}
{{- if and $several (eq .Values.store "sqlite") -}}{{- fail "several replicas need etcd: only one process can use an SQLite file" -}}{{- end -}}
{{- $wanted := list .Values.store "serving-certificate" -}}
{{- if eq .Values.certificate.from "cert-manager" -}}{{- $wanted = append $wanted "cert-manager" -}}{{- end -}}
{{- if $several -}}{{- $wanted = append $wanted "ha" -}}{{- end -}}
{{- if .Values.networkPolicy -}}{{- $wanted = append $wanted "network-policy" -}}{{- end -}}
{{- if .Values.serviceMonitor -}}{{- $wanted = append $wanted "service-monitor" -}}{{- end -}}
{{- toJson $wanted -}}
{{- end -}}

{{/* Changes .object by .operation of a JSON patch: those operations that the components use. */}}
{{- define "clrk-apiserver.patch" -}}
{{- $steps := splitList "/" (trimPrefix "/" .operation.path) -}}
{{- $last := last $steps -}}
{{- $in_list := regexMatch "^(-|[0-9]+)$" $last -}}
{{- $member := $in_list | ternary (last (initial $steps)) $last -}}
{{- $at := .object -}}
{{- range $in_list | ternary (initial (initial $steps)) (initial $steps) -}}
{{- $at = index $at (kindIs "slice" $at | ternary (int .) .) -}}
{{- end -}}
{{- $value := .operation.value -}}
{{- if eq .operation.op "test" -}}
{{- if ne $value (index $at $member) -}}{{- fail (printf "%s is not %v" .operation.path $value) -}}{{- end -}}
{{- else if and (eq .operation.op "add") (eq $last "-") -}}
{{- $_ := set $at $member (append (index $at $member) $value) -}}
{{- else if and (eq .operation.op "add") (not $in_list) -}}
{{- $_ := set $at $member $value -}}
{{- else if and (eq .operation.op "replace") $in_list -}}
{{- $items := index $at $member -}}
{{- $_ := set $at $member (concat (slice $items 0 (int $last)) (list $value) (slice $items (add1 (int $last)))) -}}
{{- else -}}
{{- fail (printf "the chart cannot %s at %s" .operation.op .operation.path) -}}
{{- end -}}
{{- end -}}
