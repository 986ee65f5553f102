"""What `berth submit -f` takes of a manifest, and what it says of the rest."""

from typing import Any

import pytest
import yaml

from clusters.adapters.kubernetes.names import AMD_GPU, GPU, INTEL_GPUS
from clusters.models import VENDORS
from controlplane.cli import manifest
from controlplane.cli.flavors import choose
from controlplane.cli.manifest import MAKERS, RESERVED_ENV, Manifest
from controlplane.kernel.document import Refused
from scheduler.core.failures import RETRIABLE, FailureClass
from scheduler.services.specs import PRIORITY_CLASSES
from scheduler.web import submission
from scheduler.web.serializers import parse

pytestmark = pytest.mark.part_web

JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  labels:
    team: vision
spec:
  parallelism: 2
  completions: 2
  backoffLimit: 0
  activeDeadlineSeconds: 3600
  template:
    spec:
      restartPolicy: Never
      priorityClassName: high
      containers:
      - name: main
        image: registry.example.org/train:1
        command: [python, train.py]
        args: ["--epochs", "3"]
        env:
        - name: LEVEL
          value: "7"
        resources:
          limits:
            cpu: "4"
            memory: 16Gi
            nvidia.com/gpu: 8
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: notebook
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: registry.example.org/notebook:1
    resources:
      requests:
        cpu: 0.5
        memory: 2048Mi
        nvidia.com/mig-1g.10gb: 1
      limits:
        cpu: 500m
        memory: 2Gi
        nvidia.com/mig-1g.10gb: 1
"""
type Tree = dict[str, Any]  # Any: YAML values


def read(text: str) -> Manifest:
    return manifest.read(text.encode())


def refusals(text: str | bytes) -> list[str]:
    with pytest.raises(Refused) as refused:
        manifest.read(text if isinstance(text, bytes) else text.encode())
    return [str(each) for each in refused.value.refusals]


def pod_with(spec: str = "", container: str = "") -> str:
    """POD with more lines in its spec (at line 7) or its container (at line 10)."""
    lines = POD.splitlines()
    body = [f"  {line}" for line in spec.splitlines()]
    inner = [f"    {line}" for line in container.splitlines()]
    return "\n".join([*lines[:6], *body, *lines[6:9], *inner, *lines[9:]]) + "\n"


def test_a_job_becomes_a_gang() -> None:
    assert read(JOB) == Manifest(
        body={
            "name": "train",
            "pod_sets": [
                {
                    "name": "main",
                    "count": 2,
                    "image": "registry.example.org/train:1",
                    "command": ["python", "train.py"],
                    "args": ["--epochs", "3"],
                    "env": {"LEVEL": "7"},
                    "cpu_milli": 4000,
                    "memory_mib": 16_384,
                    "gpu_count": 8,
                }
            ],
            "labels": {"team": "vision"},
            "run_time_limit_s": 3600,
            "priority_class": "high",
            "retries": {"limit": 0, "on": []},
        },
        profile="",
        gpus=8,
        maker="nvidia",
    )


def test_a_pod_with_a_mig_slice_becomes_a_workload_of_one() -> None:
    found = read(POD)
    assert (found.profile, found.gpus) == ("1g.10gb", 1)
    pod_set = found.body["pod_sets"][0]
    assert (pod_set["count"], pod_set["cpu_milli"], pod_set["memory_mib"]) == (1, 500, 2048)


@pytest.mark.parametrize("text", [JOB, POD])
def test_the_body_is_one_that_the_api_takes(text: str) -> None:
    body = read(text).body
    body["pod_sets"][0]["flavors"] = ["h100-80gb"]
    assert parse(body).name == body["name"]


def test_a_profile_with_media_engines_has_berths_spelling() -> None:
    assert read(POD.replace("mig-1g.10gb", "mig-1g.10gb.me")).profile == "1g.10gb+me"


def test_a_pod_without_gpus_is_cpu_work() -> None:
    found = read("\n".join(line for line in POD.splitlines() if "nvidia" not in line))
    assert (found.profile, found.gpus) == ("", 0)


@pytest.mark.parametrize(
    ("spec", "line", "said"),
    [
        ("hostNetwork: true", 7, "spec.hostNetwork"),
        ("hostPID: true", 7, "spec.hostPID"),
        ("hostIPC: true", 7, "spec.hostIPC"),
        ("nodeName: n1", 7, "spec.nodeName"),
        ("nodeSelector: {gpu: h100}", 7, "spec.nodeSelector"),
        ("tolerations:\n- operator: Exists", 7, "spec.tolerations"),
        ("affinity: {nodeAffinity: {}}", 7, "spec.affinity"),
        ("topologySpreadConstraints: []", 7, "spec.topologySpreadConstraints"),
        ("schedulerName: mine", 7, "spec.schedulerName"),
        ("schedulingGates: []", 7, "spec.schedulingGates"),
        ("runtimeClassName: nvidia", 7, "spec.runtimeClassName"),
        ("serviceAccountName: admin", 7, "spec.serviceAccountName"),
        ("serviceAccount: admin", 7, "spec.serviceAccount"),
        ("automountServiceAccountToken: true", 7, "spec.automountServiceAccountToken"),
        ("imagePullSecrets:\n- name: mine", 7, "spec.imagePullSecrets"),
        ("initContainers:\n- name: first", 7, "spec.initContainers"),
        ("ephemeralContainers:\n- name: first", 7, "spec.ephemeralContainers"),
        ("resourceClaims:\n- name: gpu", 7, "spec.resourceClaims"),
        ("priority: 1000000", 7, "spec.priority"),
        ("volumes:\n- name: root\n  hostPath: {path: /}", 9, "spec.volumes[0].hostPath"),
        ("volumes:\n- name: data\n  emptyDir: {}", 9, "spec.volumes[0].emptyDir"),
        ("securityContext:\n  runAsUser: 0", 8, "spec.securityContext.runAsUser"),
        ("priorityClassName: system-node-critical", 7, "spec.priorityClassName"),
        ("madeUp: 1", 7, "spec.madeUp"),
    ],
)
def test_it_refuses_a_field_of_the_pod_by_name(spec: str, line: int, said: str) -> None:
    (refusal,) = refusals(pod_with(spec=spec))
    assert refusal.startswith(f"line {line}: {said}: ")


@pytest.mark.parametrize(
    ("container", "line", "said"),
    [
        ("securityContext:\n  privileged: true", 11, "securityContext.privileged"),
        ("securityContext:\n  capabilities: {add: [ALL]}", 11, "securityContext.capabilities"),
        ("env:\n- name: NVIDIA_VISIBLE_DEVICES\n  value: all", 11, "env[0]"),
        ("env:\n- name: nvidia_driver_capabilities\n  value: all", 11, "env[0]"),
        ("env:\n- name: RANK\n  value: '1'", 11, "env[0]"),
        (
            "env:\n- name: A\n  valueFrom: {secretKeyRef: {name: s, key: k}}",
            12,
            "env[0].valueFrom",
        ),
        ("envFrom:\n- secretRef: {name: s}", 10, "envFrom"),
        ("volumeMounts:\n- name: data", 10, "volumeMounts"),
        ("volumeDevices: []", 10, "volumeDevices"),
        ("ports:\n- containerPort: 80\n  hostPort: 80", 10, "ports"),
        ("livenessProbe: {}", 10, "livenessProbe"),
        ("lifecycle: {}", 10, "lifecycle"),
        ("workingDir: /data", 10, "workingDir"),
        ("imagePullPolicy: Always", 10, "imagePullPolicy"),
        ("tty: true", 10, "tty"),
        ("command: [sleep, 5]", 10, "command[1]"),
        ("command: sleep", 10, "command"),
        ("madeUp: 1", 10, "madeUp"),
    ],
)
def test_it_refuses_a_field_of_the_container_by_name(container: str, line: int, said: str) -> None:
    (refusal,) = refusals(pod_with(container=container))
    assert refusal.startswith(f"line {line}: spec.containers[0].{said}: ")


def changed(old: str, new: str, text: str = POD) -> list[str]:
    assert old in text
    return refusals(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("cpu: 0.5", "cpu: 1", "a request has to equal its limit"),
        ("memory: 2048Mi", "memory: 2G", "a request has to equal its limit"),
        ("cpu: 500m\n", "pods: 1\n", "this limit is required"),
        ("memory: 2Gi\n", "hugepages-2Mi: 2Gi\n", "only cpu, memory"),
        ("nvidia.com/mig-1g.10gb: 1\n    ", "amd.com/gpu: 1\n    ", "a request has to equal"),
        ("memory: 2Gi", "memory: 2Gi\n        nvidia.com/gpu: 1", "a second kind of GPU"),
        ("memory: 2Gi", "memory: 2Gi\n        nvidia.com/gpu.shared: 1", "only cpu, memory"),
        (
            "memory: 2Gi",
            "memory: 2Gi\n        gpu.intel.com/millicores: 1",
            "gpu.intel.com/xe and",
        ),
        ("memory: 2Gi", "memory: 2Gi\n        amd.com/gpu: 1", "a second kind of GPU"),
        ("memory: 2Gi", "memory: -2Gi", "out of range: more than 0 and at most 64Ti"),
        ("cpu: 500m", 'cpu: "0"', "out of range: more than 0 and at most 4096"),
        ("nvidia.com/mig-1g.10gb: 1\n      l", "nvidia.com/gpu: 1\n      l", "has to equal"),
        ("memory: 2Gi", "memory: .inf", "a quantity is wanted"),
        ("memory: 2Gi", "memory: true", "a quantity is wanted"),
        ("memory: 2Gi", "memory: ٢Gi", "a quantity is wanted"),
        ("restartPolicy: Never", "restartPolicy: OnFailure", "say Never"),
        ("  restartPolicy: Never\n", "", "say Never"),
        ("  name: notebook", "  generateName: n-", "this field is required"),
        ("  name: notebook", "  name: 5", "text is wanted"),
        ("  name: notebook", "  name: n\n  namespace: x", "the project decides"),
        ("  name: notebook", "  name: n\n  annotations: {a: b}", "not carried over"),
        ("kind: Pod", "kind: Deployment", "only a Job of batch/v1 or a Pod of v1"),
        ("apiVersion: v1", "apiVersion: v2", "only a Job of batch/v1 or a Pod of v1"),
        ("spec:\n", "spec: []\nother:\n", "a mapping is wanted"),
        ("spec:\n", "status: {}\nspec:\n", "no status"),
        ("    image: registry.example.org/notebook:1\n", "", "this field is required"),
        ("  - name: main", "  - name: other\n  - name: main", "a second container"),
    ],
)
def test_it_says_what_is_wrong_with_a_pod(old: str, new: str, said: str) -> None:
    assert any(said in refusal for refusal in changed(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("completions: 2", "completions: 4", "line 9: spec.completions: 4 completions"),
        ("  completions: 2\n", "", "line 8: spec.parallelism: 1 completions"),
        ("activeDeadlineSeconds: 3600", "activeDeadlineSeconds: 0", "from 1 to 7776000"),
        ("parallelism: 2", "parallelism: 2.0", "a whole number"),
        ("parallelism: 2", "parallelism: 010", "a whole number"),
        ("parallelism: 2", "parallelism: true", "a whole number"),
        ("backoffLimit: 0", "backoffLimit: 101", "out of range: from 0 to 100"),
        ("backoffLimit: 0", "backoffLimit: often", "a whole number"),
        ("backoffLimit: 0", "backoffLimit: false", "a whole number"),
        ("backoffLimit: 0", "completionMode: Indexed", "RANK"),
        ("backoffLimit: 0", "suspend: true", "line 10: spec.suspend"),
        ("backoffLimit: 0", "ttlSecondsAfterFinished: 9", "spec.ttlSecondsAfterFinished"),
        ("backoffLimit: 0", "podFailurePolicy: {}", "spec.podFailurePolicy"),
        (
            "      restartPolicy: Never\n",
            "      restartPolicy: Never\n      terminationGracePeriodSeconds: 0\n",
            "out of range: from 1 to 3600",
        ),
        ("  template:\n", "  template:\n    metadata: {labels: {team: x}}\n", "differs"),
        ("nvidia.com/gpu: 8", "nvidia.com/gpu: 0.5", "a whole number"),
    ],
)
def test_it_says_what_is_wrong_with_a_job(old: str, new: str, said: str) -> None:
    assert any(said in refusal for refusal in changed(old, new, JOB))


def test_a_jobs_retries_and_a_pods_grace_are_the_workloads() -> None:
    grace = "      restartPolicy: Never\n      terminationGracePeriodSeconds: 300\n"
    text = JOB.replace("backoffLimit: 0", "backoffLimit: 2")
    body = read(text.replace("      restartPolicy: Never\n", grace)).body
    assert body["grace_s"] == 300
    assert body["retries"]["limit"] == 2
    again = parse(body | {"pod_sets": [body["pod_sets"][0] | {"flavors": ["h100"]}]}).retries.on
    assert set(RETRIABLE) - set(again) == {FailureClass.RUN_TIME_LIMIT, FailureClass.IDLE}
    assert "grace_s" not in read(JOB).body


def test_a_job_without_retries_is_tried_once_whatever_fails() -> None:
    body = read(JOB).body
    retries = parse(body | {"pod_sets": [body["pod_sets"][0] | {"flavors": ["h100"]}]}).retries
    for failure in FailureClass:
        assert retries.refusal(failure, exit_codes=(), failures=0, node_losses=0)


def test_it_names_everything_at_once_in_the_order_of_the_lines() -> None:
    text = pod_with("hostNetwork: true\nnodeName: n1", "tty: true").replace("cpu: 0.5", "cpu: 9")
    lines = [int(refusal.split()[1].rstrip(":")) for refusal in refusals(text)]
    assert lines == sorted(lines)
    assert len(lines) == 4


def test_every_example_is_yaml_that_others_read_too() -> None:
    assert yaml.safe_load(JOB)["kind"] == "Job"


def test_its_tables_agree_with_the_servers() -> None:
    assert RESERVED_ENV == submission.RENDEZVOUS
    assert set(manifest.PRIORITIES) == set(PRIORITY_CLASSES)


FLAVORS: list[Tree] = [
    {"name": "a100", "kind": "whole", "profile": ""},
    {"name": "h100", "kind": "whole", "profile": ""},
    {"name": "h100-1g.10gb", "kind": "mig", "profile": "1g.10gb"},
    {"name": "cpu", "kind": "cpu", "profile": ""},
]


def test_a_resource_means_every_flavor_of_its_kind() -> None:
    assert choose(read(JOB), FLAVORS, ()) == ["a100", "h100"]
    assert choose(read(POD), FLAVORS, ()) == ["h100-1g.10gb"]


def test_named_flavors_keep_their_order_and_have_to_fit() -> None:
    assert choose(read(JOB), FLAVORS, ("h100", "a100")) == ["h100", "a100"]
    with pytest.raises(Exception, match=r"asks for MIG 1g\.10gb, which --flavor h100 is not"):
        choose(read(POD), FLAVORS, ("h100",))
    with pytest.raises(Exception, match="no such flavor"):
        choose(read(POD), FLAVORS[:2], ())


def test_whole_gpus_are_asked_for_as_the_clusters_offer_them() -> None:
    assert set(MAKERS) == {GPU, AMD_GPU, *INTEL_GPUS}
    assert set(MAKERS.values()) == set(VENDORS)


def test_memory_of_anothers_gpu_is_no_resource() -> None:
    text = POD.replace("nvidia.com/mig-1g.10gb: 1", "amd.com/gpu: 1\n        nvidia.com/gpumem: 9")
    assert "it goes with nvidia.com/gpu; say" in "".join(refusals(text))
