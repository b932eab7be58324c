{{/* Changes .object as the values say, where no component does. */}}
{{- define "clrk-apiserver.values" -}}
{{- $object := .object -}}
{{- $values := .root.Values -}}
{{- if eq $object.kind "Deployment" -}}
{{- $pod := $object.spec.template.spec -}}
{{- $container := first $pod.containers -}}
{{- $_ := set $object.spec "replicas" $values.replicas -}}
{{- $_ := set $container "image" (printf "%s:%s" $values.image.repository (default .root.Chart.AppVersion $values.image.tag)) -}}
{{- $_ := set $container "imagePullPolicy" $values.image.pullPolicy -}}
{{- $_ := set $container "args" (concat $container.args $values.args) -}}
{{- with $values.resources -}}{{- $_ := set $container "resources" . -}}{{- end -}}
{{- with $values.imagePullSecrets -}}{{- $_ := set $pod "imagePullSecrets" . -}}{{- end -}}
{{- else if eq $object.kind "PersistentVolumeClaim" -}}
{{- $_ := set $object.spec.resources.requests "storage" $values.sqlite.size -}}
{{- with $values.sqlite.storageClassName -}}{{- $_ := set $object.spec "storageClassName" . -}}{{- end -}}
{{- if $values.sqlite.keep -}}{{- $_ := set $object.metadata "annotations" (dict "helm.sh/resource-policy" "keep") -}}{{- end -}}
{{- else if eq $object.kind "PodDisruptionBudget" -}}
{{- $_ := set $object.spec "minAvailable" $values.podDisruptionBudget.minAvailable -}}
{{- else if and (eq $object.kind "APIService") .caBundle -}}
{{- $_ := set $object.spec "caBundle" .caBundle -}}
{{- end -}}
{{- end -}}

{{/* A certificate for the Service and the authority that signed it, which stay once they are in the cluster: a Secret's data, as JSON. */}}
{{- define "clrk-apiserver.certificate" -}}
{{- $kept := lookup "v1" "Secret" .Release.Namespace .Values.certificate.secretName -}}
{{- if $kept -}}
{{- toJson $kept.data -}}
{{- else -}}
{{- $host := printf "clrk-apiserver.%s.svc" .Release.Namespace -}}
{{- $authority := genCAWithKey "clrk-apiserver-authority" 3650 (genPrivateKey "ecdsa") -}}
{{- $names := list $host (printf "%s.cluster.local" $host) -}}
{{- $certificate := genSignedCertWithKey $host (list) $names 3650 $authority (genPrivateKey "ecdsa") -}}
{{- dict "ca.crt" (b64enc $authority.Cert) "tls.crt" (b64enc $certificate.Cert) "tls.key" (b64enc $certificate.Key) | toJson -}}
{{- end -}}
{{- end -}}
