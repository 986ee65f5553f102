"""What a manifest may say, and why what it may not is refused. Data only."""

UNKNOWN = "Berth does not accept this field"
RESOURCE = (
    "only cpu, memory, nvidia.com/gpu, nvidia.com/gpumem, nvidia.com/mig-<profile>, amd.com/gpu,"
    " gpu.intel.com/xe and gpu.intel.com/i915 are accepted"
)
_PLACEMENT = "where pods run is Berth's decision; narrow it with --cluster or --flavor"
_IDENTITY = "pods run without rights in the cluster's API"
_NODE = "it would reach the node, or its neighbours"
_KEPT = "Berth keeps no such object; leave it out"
_STORAGE = "volumes are not accepted"
_CLAIMS = "say nvidia.com/gpu, nvidia.com/mig-<profile>, amd.com/gpu or gpu.intel.com/xe"
_SERVICE = "workloads run to their end; they serve nothing"

TOP = {"status": "a manifest to submit has no status"}
METADATA = {
    "namespace": "the project decides the namespace",
    "generateName": "give it a name",
    "annotations": "annotations are not carried over; leave them out",
    "name": "a template needs no name",
}
JOB_TAKEN = {
    "parallelism", "completions", "template", "activeDeadlineSeconds", "backoffLimit",
    "completionMode",
}  # fmt: skip
JOB = {
    "suspend": "when it starts is Berth's decision",
    "ttlSecondsAfterFinished": _KEPT,
    "selector": _KEPT,
    "manualSelector": _KEPT,
    "podFailurePolicy": "say backoffLimit",
    "podReplacementPolicy": "say backoffLimit",
    "backoffLimitPerIndex": "say backoffLimit",
    "maxFailedIndexes": "say backoffLimit",
    "successPolicy": "a workload has succeeded when all its pods have",
    "managedBy": "Berth manages it",
}
POD_TAKEN = {
    "containers", "restartPolicy", "activeDeadlineSeconds", "priorityClassName",
    "terminationGracePeriodSeconds",
}  # fmt: skip
POD = {
    "initContainers": "only one container a pod is accepted",
    "ephemeralContainers": "only one container a pod is accepted",
    "volumes": _STORAGE,
    "hostNetwork": _NODE,
    "hostPID": _NODE,
    "hostIPC": _NODE,
    "hostUsers": _NODE,
    "hostAliases": _NODE,
    "shareProcessNamespace": "only one container a pod is accepted",
    "nodeName": _PLACEMENT,
    "nodeSelector": _PLACEMENT,
    "affinity": _PLACEMENT,
    "tolerations": _PLACEMENT,
    "topologySpreadConstraints": _PLACEMENT,
    "schedulerName": _PLACEMENT,
    "schedulingGates": _PLACEMENT,
    "priority": "say priorityClassName",
    "preemptionPolicy": "say --not-preemptible",
    "runtimeClassName": _NODE,
    "resourceClaims": _CLAIMS,
    "serviceAccount": _IDENTITY,
    "serviceAccountName": _IDENTITY,
    "automountServiceAccountToken": _IDENTITY,
    "imagePullSecrets": "pull secrets are the project's, set by an operator",
    "securityContext": "Berth sets it, as the restricted Pod Security Standard demands",
    "hostname": "Berth names the pods",
    "subdomain": "Berth names the pods",
    "setHostnameAsFQDN": "Berth names the pods",
    "dnsPolicy": "Berth leaves name resolution to the cluster",
    "dnsConfig": "Berth leaves name resolution to the cluster",
    "enableServiceLinks": "it is always off",
    "readinessGates": _SERVICE,
}
CONTAINER_TAKEN = {"name", "image", "command", "args", "env", "resources"}
CONTAINER = {
    "envFrom": "say name and value",
    "volumeMounts": _STORAGE,
    "volumeDevices": _STORAGE,
    "securityContext": "Berth sets it, as the restricted Pod Security Standard demands",
    "ports": _SERVICE,
    "livenessProbe": _SERVICE,
    "readinessProbe": _SERVICE,
    "startupProbe": _SERVICE,
    "lifecycle": "hooks are not accepted",
    "workingDir": "the image's own is used; change it in the command",
    "imagePullPolicy": "the cluster's default is used",
    "stdin": "nobody can type there",
    "stdinOnce": "nobody can type there",
    "tty": "nobody can type there",
    "restartPolicy": "Berth does not restart containers",
    "terminationMessagePath": UNKNOWN,
    "terminationMessagePolicy": UNKNOWN,
    "resizePolicy": UNKNOWN,
}
ENV = {"valueFrom": "only plain values: say name and value"}
RESOURCES = {"claims": _CLAIMS}

OPENED = {"volumes", "securityContext"}
"""Refused fields whose parts are named too."""
INNER = {
    "hostPath": _NODE,
    "privileged": _NODE,
    "allowPrivilegeEscalation": "it is always false",
    "capabilities": "all of them are always dropped",
    "procMount": _NODE,
    "sysctls": _NODE,
    "seLinuxOptions": _NODE,
    "appArmorProfile": _NODE,
    "windowsOptions": _NODE,
}
