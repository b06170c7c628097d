{{/*
The DaemonSet of the agents. Call with a dict: root (the root context), clean (whether the pods only take everything of
ours off their node), annotations (of the DaemonSet; may be absent).
*/}}
{{- define "sallyport.agents" -}}
{{- $ := .root }}
{{- $values := $.Values.agent }}
{{- $selector := include "sallyport.selector" "agent" }}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: sallyport-agent
  namespace: {{ $.Release.Namespace }}
  labels:
    app.kubernetes.io/component: agent
    {{- include "sallyport.labels" $ | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  revisionHistoryLimit: 3
  updateStrategy:
    rollingUpdate:
      # Rules and routes stay while an agent is away, so traffic flows on; but nobody repairs or takes over meanwhile.
      maxUnavailable: {{ ternary "100%" $values.maxUnavailable .clean }}
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
  template:
    metadata:
      labels:
        app.kubernetes.io/component: agent
        {{- include "sallyport.labels" $ | nindent 8 }}
      annotations:
        sallyport.io/restart-keys: {{ include "sallyport.restartKeys" $ | quote }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: sallyport-agent
      automountServiceAccountToken: {{ not .clean }}
      {{- with $.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      priorityClassName: {{ $values.priorityClassName | quote }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      tolerations:
        - key: {{ include "sallyport.startupTaint" $ }}
          operator: Exists
        {{- with $values.tolerations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      # The network of the node is what an agent is for.
      hostNetwork: true
      # The API server is known by address; names of the cluster are not needed before DNS is there.
      dnsPolicy: Default
      terminationGracePeriodSeconds: {{ ternary 1 10 .clean }}
      securityContext:
        # Kubernetes gives added capabilities to root only. Root without the others can do no more than these two allow.
        runAsUser: 0
        seccompProfile:
          type: RuntimeDefault
      {{- if .clean }}
      initContainers:
        - name: clean
          {{- include "sallyport.agentContainer" (dict "root" $ "args" (list "--clean")) | nindent 10 }}
      containers:
        # Ready means clean. It holds the port of the agents, so that no agent is on the node at the same time.
        - name: cleaned
          image: {{ include "sallyport.image" $ | quote }}
          imagePullPolicy: {{ $.Values.image.pullPolicy }}
          command: [node, --eval, 'setInterval(() => {}, 1e9)']
          ports:
            {{- include "sallyport.agentPorts" $ | nindent 12 }}
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          securityContext:
            runAsNonRoot: true
            runAsUser: 65532
            runAsGroup: 65532
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
      {{- else }}
      containers:
        - name: agent
          {{- $args := list (printf "--health-address=:%d" (int $values.healthPort)) }}
          {{- include "sallyport.agentContainer" (dict "root" $ "args" $args) | nindent 10 }}
          ports:
            {{- include "sallyport.agentPorts" $ | nindent 12 }}
          # Neither asks whether the API server is there: an agent without it keeps its node as it is.
          # An agent that has too little processor answers late, and to end it would make more work: only one that has not answered for
          # two minutes is ended. Its EIPs are on another node by then.
          livenessProbe:
            httpGet:
              path: /livez
              port: health
            periodSeconds: 30
            timeoutSeconds: 30
            failureThreshold: 4
          readinessProbe:
            httpGet:
              path: /readyz
              port: health
            periodSeconds: 2
            timeoutSeconds: 2
            failureThreshold: 2
      {{- end }}
      volumes:
        - name: config
          configMap:
            name: sallyport
        - name: state
          hostPath:
            path: /run/sallyport
            type: DirectoryOrCreate
        - name: settings
          hostPath:
            path: /proc/sys/net
            type: Directory
{{- end }}

{{/* The container of an agent, without its name, ports and probes. Call with a dict: root, args. */}}
{{- define "sallyport.agentContainer" -}}
{{- $ := .root -}}
image: {{ include "sallyport.image" $ | quote }}
imagePullPolicy: {{ $.Values.image.pullPolicy }}
args:
  - agent
  - --config=/etc/sallyport/config.yaml
  - --state-folder=/run/sallyport
  - --sysctl-root=/host/proc/sys
  - --log-level={{ $.Values.agent.logLevel }}
  - --page-auth={{ ternary "token" "none" $.Values.metrics.authentication }}
  {{- range .args }}
  - {{ . }}
  {{- end }}
env:
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  # An agent is there once for every node, so memory counts. Short-lived objects get 2 MB instead of up to 16: it makes few of
  # them. One thread helps V8 instead of four: the C library keeps memory for each, 6 to 9 MB in all.
  - name: NODE_OPTIONS
    value: --max-semi-space-size=2 --v8-pool-size=1
resources:
  {{- toYaml $.Values.agent.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
    # NET_ADMIN: devices, routes, nftables, settings of the network. NET_RAW: ARP and neighbour discovery.
    add: [NET_ADMIN, NET_RAW]
volumeMounts:
  - name: config
    mountPath: /etc/sallyport
    readOnly: true
  - name: state
    mountPath: /run/sallyport
  # A container sees /proc/sys read-only. This is the part about the network, and no other; see docs/adr/0012.
  - name: settings
    mountPath: /host/proc/sys/net
{{- end }}

{{/* The port of an agent, on its node. */}}
{{- define "sallyport.agentPorts" -}}
- name: health
  containerPort: {{ .Values.agent.healthPort }}
  hostPort: {{ .Values.agent.healthPort }}
{{- end }}
