"""Pods that others made for Berth to start: how they look, who owns them, and how they are taken
over. What the policy does to them is done here by hand, so that the simulator has them too."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from clusters.adapters.kubernetes import catching
from clusters.adapters.kubernetes.manifests import pod
from clusters.caught import CaughtPod, OwnerRef, OwnerReport
from clusters.port import ClusterError, Fault, PodPhase, PodReport
from tests.contract.stage import Stage
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.manifests import apply, remove

BERTH = "system:serviceaccount:berth-system:berth"


@pytest.fixture
def reader(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A stage on which Berth may read owners. The policies are left out: the administrator, who
    plays the controllers, would be caught."""
    if stage.simulated:
        yield stage
        return
    kube: ControlPlane = request.getfixturevalue("control_plane")
    rights = catching.documents(names=NAMES, user=BERTH)[:2]
    apply(kube.admin, rights)
    yield stage
    remove(kube.admin, rights)


def caught(stage: Stage, *, owner: Json | None = None, **labels: str) -> Json:
    """A pod as the policy leaves it."""
    body = pod(stage.request(gpu=1), names=NAMES)
    del body["spec"]["priorityClassName"]  # which is Berth's
    metadata = body["metadata"]
    metadata["labels"] = {"berth.dev/caught": "berth", "berth.dev/priority": "high"} | labels
    metadata["annotations"] = {"berth.dev/created-by": "ada", "berth.dev/flavors": "h100, a100"}
    if owner is not None:
        keys = ("apiVersion", "kind")
        reference = {key: owner[key] for key in keys} | {
            key: owner["metadata"][key] for key in ("name", "uid")
        }
        metadata["ownerReferences"] = [reference | {"controller": True}]
    return body


def made(stage: Stage, body: Json) -> PodReport:
    stage.admin("POST", f"/api/v1/namespaces/{stage.namespace}/pods", body)
    found = stage.port.read_pod(namespace=stage.namespace, name=body["metadata"]["name"])
    assert found is not None
    return found


def job(stage: Stage, **spec: int) -> Json:
    container = pod(stage.request(gpu=1), names=NAMES)["spec"]["containers"][0]
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        # Suspended: its controller makes no pods, the test does.
        "spec": {"suspend": True, "template": template, **spec},
    }
    path = f"/apis/batch/v1/namespaces/{stage.namespace}/jobs"
    answer: Json = stage.admin("POST", path, body)
    return body | {"metadata": answer["metadata"]}


def reference(body: Json) -> OwnerRef:
    metadata = body["metadata"]
    return OwnerRef(body["apiVersion"], body["kind"], metadata["name"], metadata["uid"])


def test_a_caught_pod_says_who_made_it_and_what_it_asks(stage: Stage) -> None:
    owner = job(stage, parallelism=2)
    seen = made(stage, caught(stage, owner=owner))
    assert (seen.phase, seen.workload) == (PodPhase.GATED, "")
    assert seen.resources == (("nvidia.com/gpu", 1),)
    assert seen.caught == CaughtPod(
        owner=reference(owner),
        image="example.test/train:1",
        priority="high",
        flavors=("h100", "a100"),
        creator="ada",
        run_time_limit_s=3600,
        images=("example.test/train:1",),
    )


def test_one_tells_its_labels_and_the_images_of_all_its_containers(stage: Stage) -> None:
    body = caught(stage)
    body["metadata"]["labels"]["team"] = "vision"
    [container] = body["spec"]["containers"]
    body["spec"]["containers"].append(
        {**container, "name": "logs", "image": "example.test/logs:1", "resources": {}}
    )
    first = {**container, "name": "fetch", "image": "example.test/fetch:1", "resources": {}}
    body["spec"]["initContainers"] = [first]
    seen = made(stage, body).caught
    assert seen is not None
    assert seen.labels == (("team", "vision"),)
    assert seen.images == ("example.test/train:1", "example.test/logs:1", "example.test/fetch:1")


def test_one_that_waits_at_gates_of_others_too_names_them(stage: Stage) -> None:
    body = caught(stage)
    others = ["example.test/storage", "example.test/network"]
    body["spec"]["schedulingGates"] += [{"name": gate} for gate in others]
    seen = made(stage, body).caught
    assert seen is not None
    assert seen.behind == "example.test/storage, example.test/network"


def test_containers_that_say_nothing_ask_for_what_a_confined_namespace_gives(
    stage: Stage,
) -> None:
    body = caught(stage)
    [container] = body["spec"]["containers"]
    container["resources"] = {"limits": {"nvidia.com/gpu": "1", "cpu": "2"}}
    body["spec"]["containers"].append({**container, "name": "logs", "resources": {}})
    seen = made(stage, body)
    assert (seen.cpu_milli, seen.memory_mib) == (2000 + 100, 128 + 128)


def test_a_pod_of_nobody_or_of_another_installation_is_not_caught(stage: Stage) -> None:
    assert stage.port.create_pod(request=stage.request()).caught is None
    other = caught(stage)
    other["metadata"]["labels"]["berth.dev/caught"] = "lab"
    assert made(stage, other).caught is None


def test_what_a_pod_says_of_its_gang_counts_when_it_is_whole(stage: Stage) -> None:
    body = caught(stage)
    body["metadata"]["annotations"] |= {"berth.dev/gang": "run", "berth.dev/gang-size": "4"}
    seen = made(stage, body).caught
    assert seen is not None
    assert (seen.gang, seen.gang_size) == ("run", 4)
    body = caught(stage)
    body["metadata"]["annotations"] |= {"berth.dev/gang": "run", "berth.dev/gang-size": "four"}
    seen = made(stage, body).caught
    assert seen is not None
    assert (seen.gang, seen.gang_size) == ("", 0)


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ({"parallelism": 3}, (("", 3),)),
        ({"parallelism": 3, "completions": 3}, (("", 3),)),
        ({"parallelism": 3, "completions": 2}, (("", 2),)),
        ({"parallelism": 2, "completions": 9}, ()),  # its pods come one after the other
    ],
)
def test_a_job_tells_how_many_of_its_pods_start_together(
    reader: Stage, spec: dict[str, int], sizes: tuple[tuple[str, int], ...]
) -> None:
    owner = reference(job(reader, **spec))
    found = reader.port.read_owner(namespace=reader.namespace, owner=owner)
    assert found == OwnerReport(owner, sizes)


def test_an_owner_that_is_gone_or_another_of_its_name_is_none(reader: Stage) -> None:
    owner = reference(job(reader, parallelism=1))
    for gone in (replace(owner, name="other"), replace(owner, uid="another")):
        assert reader.port.read_owner(namespace=reader.namespace, owner=gone) is None


def test_an_owner_of_no_known_kind_is_at_the_top(reader: Stage) -> None:
    owner = OwnerRef("example.test/v1", "Workflow", "nightly", "u1")
    found = reader.port.read_owner(namespace=reader.namespace, owner=owner)
    assert found == OwnerReport(owner)


def test_so_is_one_that_berth_may_not_read(stage: Stage) -> None:
    owner = reference(job(stage, parallelism=2))
    if stage.simulated:
        stage.admin("POST", "/_simulator/faults", {"kind": "forbid", "resource": "jobs.batch"})
    found = stage.port.read_owner(namespace=stage.namespace, owner=owner)
    assert found == OwnerReport(owner)


def test_it_is_taken_over_and_its_gate_opened(stage: Stage) -> None:
    node = stage.add_node()
    before = made(stage, caught(stage))
    taken = stage.port.adopt_pod(pod=before, workload="work", attempt=2, rank=3)
    assert (taken.uid, taken.phase) == (before.uid, PodPhase.GATED)
    assert (taken.installation, taken.workload, taken.attempt, taken.rank) == (
        "berth",
        "work",
        2,
        3,
    )
    assert taken.caught == before.caught
    stage.wait(stage.open(taken, node), PodPhase.RUNNING, PodPhase.SUCCEEDED)


def test_one_that_changed_or_went_is_not_taken_over(stage: Stage) -> None:
    before = made(stage, caught(stage))
    taken = stage.port.adopt_pod(pod=before, workload="work", attempt=1, rank=0)
    for stale in (replace(before), replace(taken, uid="another")):
        with pytest.raises(ClusterError) as call:
            stage.port.adopt_pod(pod=stale, workload="work", attempt=2, rank=0)
        assert call.value.fault in (Fault.CONFLICT, Fault.INVALID)
    stage.port.delete_pod(namespace=taken.namespace, name=taken.name, uid=taken.uid, grace_s=0)
    with pytest.raises(ClusterError) as call:
        stage.port.adopt_pod(pod=taken, workload="work", attempt=2, rank=0)
    assert call.value.fault is Fault.NOT_FOUND
