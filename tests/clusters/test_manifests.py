"""What is sent to a cluster: pods that say all that Berth decides, and nothing that it forbids."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from clusters.adapters.kubernetes import manifests
from clusters.adapters.kubernetes.names import Names
from clusters.port import PodRequest

pytestmark = pytest.mark.part_simulator

NAMES = Names(prefix="berth.dev", installation="lab")
REQUEST = PodRequest(
    namespace="team",
    name="w1-2-3",
    workload="w1",
    attempt=2,
    rank=3,
    image="example.test/train:1",
    command=("python", "train.py"),
    args=("--fast",),
    env=(("RANK", "3"), ("EPOCHS", "10")),
    cpu_milli=1500,
    memory_mib=2048,
    resources=(("nvidia.com/gpu", 4),),
    run_time_limit_s=600,
    subdomain="gang",
)


def pod(**change: object) -> manifests.Json:
    return manifests.pod(replace(REQUEST, **change), names=NAMES)  # type: ignore[arg-type]  # by case


def container(body: manifests.Json) -> manifests.Json:
    [main] = body["spec"]["containers"]
    assert isinstance(main, dict)
    return main


def env_of(body: manifests.Json) -> dict[str, str]:
    return {item["name"]: item["value"] for item in container(body)["env"]}


def spec_hash(body: manifests.Json) -> str:
    return str(body["metadata"]["annotations"]["berth.dev/spec-hash"])


def test_a_pod_is_born_with_the_gate_and_its_owner_on_its_labels() -> None:
    body = pod()
    assert body["metadata"]["name"] == "w1-2-3"
    assert body["metadata"]["namespace"] == "team"
    assert body["metadata"]["labels"] == {
        "berth.dev/installation": "lab",
        "berth.dev/workload": "w1",
        "berth.dev/attempt": "2",
        "berth.dev/rank": "3",
    }
    assert body["spec"]["schedulingGates"] == [{"name": "berth.dev/placed"}]


def test_a_pod_runs_once_within_its_limit_and_asks_for_exactly_what_it_gets() -> None:
    body = pod()
    assert body["spec"]["restartPolicy"] == "Never"
    assert body["spec"]["activeDeadlineSeconds"] == 600
    resources = container(body)["resources"]
    assert resources["requests"] == resources["limits"]
    assert resources["limits"] == {"cpu": "1500m", "memory": "2048Mi", "nvidia.com/gpu": "4"}
    assert container(body)["command"] == ["python", "train.py"]
    assert container(body)["args"] == ["--fast"]


def test_without_a_limit_there_is_no_deadline() -> None:
    assert "activeDeadlineSeconds" not in pod(run_time_limit_s=None)["spec"]


def test_an_images_own_command_is_left_alone() -> None:
    main = container(pod(command=(), args=()))
    assert "command" not in main
    assert "args" not in main


def test_a_gangs_pod_has_a_name_in_its_service_and_a_single_one_has_none() -> None:
    assert (pod()["spec"]["hostname"], pod()["spec"]["subdomain"]) == ("w1-2-3", "gang")
    assert "hostname" not in pod(subdomain="")["spec"]


def test_a_pod_gets_no_credential_of_the_cluster() -> None:
    spec = pod()["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False


def test_a_pod_meets_the_restricted_security_standard() -> None:
    body = pod()
    assert body["spec"]["securityContext"]["runAsNonRoot"] is True
    assert body["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(body)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    forbidden = {"hostNetwork", "hostPID", "hostIPC", "volumes", "nodeName", "initContainers"}
    assert not forbidden & body["spec"].keys()


@pytest.mark.parametrize("resources", [(), (("nvidia.com/gpu", 0),)])
def test_a_pod_without_a_device_is_shown_none_whatever_its_image_says(
    resources: tuple[tuple[str, int], ...],
) -> None:
    body = pod(resources=resources, env=(("NVIDIA_VISIBLE_DEVICES", "all"), ("A", "b")))
    assert env_of(body) == {"A": "b", "NVIDIA_VISIBLE_DEVICES": "void"}


@pytest.mark.parametrize("resource", ["gpu", "gpu.shared", "mig-1g.10gb"])
def test_a_pod_with_a_device_is_shown_it_by_the_device_plugin(resource: str) -> None:
    assert env_of(pod(resources=((f"nvidia.com/{resource}", 1),))) == {"RANK": "3", "EPOCHS": "10"}


def test_the_hash_is_the_same_for_the_same_request() -> None:
    assert spec_hash(pod()) == spec_hash(pod())


@pytest.mark.parametrize(
    "change",
    [
        {"image": "example.test/train:2"},
        {"command": ("python", "train.py", "--fast"), "args": ()},
        {"env": (("RANK", "4"), ("EPOCHS", "10"))},
        {"cpu_milli": 1501},
        {"memory_mib": 2049},
        {"resources": (("nvidia.com/gpu", 5),)},
        {"run_time_limit_s": 601},
        {"grace_s": 31},
        {"notice": True},
        {"workload": "w2"},
        {"attempt": 3},
        {"rank": 4},
    ],
)
def test_the_hash_differs_with_anything_asked_for(change: dict[str, object]) -> None:
    assert spec_hash(pod(**change)) != spec_hash(pod())


def test_opening_binds_to_uid_and_version_and_pins_the_node() -> None:
    assert manifests.opening(uid="u", resource_version="7", hostname="gpu-1") == {
        "metadata": {"uid": "u", "resourceVersion": "7"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": "gpu-1"},
            "schedulingGates": None,
        },
    }


def test_a_pod_has_the_grace_it_asked_for() -> None:
    assert pod()["spec"]["terminationGracePeriodSeconds"] == 30
    assert pod(grace_s=300)["spec"]["terminationGracePeriodSeconds"] == 300


def test_a_pod_that_gets_notice_reads_it_in_a_file() -> None:
    body = pod(notice=True)
    [volume] = body["spec"]["volumes"]
    assert volume["downwardAPI"]["items"] == [
        {
            "path": "notice-until",
            "fieldRef": {"fieldPath": "metadata.annotations['berth.dev/notice-until']"},
        }
    ]
    mount = {"name": volume["name"], "mountPath": "/etc/berth", "readOnly": True}
    assert container(body)["volumeMounts"] == [mount]
    assert "volumes" not in pod()["spec"]
    assert "volumeMounts" not in container(pod())


def test_notice_is_bound_to_the_uid_and_told_in_utc() -> None:
    until = datetime(2026, 3, 1, 13, 0, 30, tzinfo=timezone(timedelta(hours=1)))
    assert manifests.notice(uid="u", until=until, names=NAMES) == {
        "metadata": {
            "uid": "u",
            "annotations": {"berth.dev/notice-until": "2026-03-01T12:00:30Z"},
        }
    }


def test_another_prefix_names_everything() -> None:
    names = Names(prefix="gpu.example.org", installation="lab")
    body = manifests.pod(REQUEST, names=names)
    assert body["spec"]["schedulingGates"] == [{"name": "gpu.example.org/placed"}]
    named = [*body["metadata"]["labels"], *body["metadata"]["annotations"]]
    assert all(name.startswith("gpu.example.org/") for name in named)
