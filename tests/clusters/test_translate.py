"""What clusters say of pods, as reports; and that nonsense harms nothing but itself."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.adapters.kubernetes import translate
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.translate import Malformed
from clusters.port import PodPhase, PodReport

pytestmark = pytest.mark.part_simulator

NAMES = Names(prefix="berth.dev", installation="lab")
OURS = {
    "berth.dev/installation": "lab",
    "berth.dev/workload": "w1",
    "berth.dev/attempt": "2",
    "berth.dev/rank": "3",
}
type Json = dict[str, Any]  # Any: an object of the API


def pod_body(
    *, metadata: Json | None = None, spec: Json | None = None, status: Json | None = None
) -> Json:
    named = {"namespace": "team", "name": "w1-2-3", "uid": "u1", "resourceVersion": "7"}
    limits = {"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": "4"}
    main = {"name": "main", "image": "x", "resources": {"requests": limits, "limits": limits}}
    return {
        "metadata": {**named, "labels": OURS, **(metadata or {})},
        "spec": {"containers": [main], **(spec or {})},
        "status": {"phase": "Pending", **(status or {})},
    }


def pod(**parts: Json) -> PodReport:
    return translate.pod(pod_body(**parts), names=NAMES)


def ended(phase: str, code: int, why: str, **status: object) -> PodReport:
    terminated = {
        "exitCode": code,
        "reason": why,
        "startedAt": "2026-03-01T10:00:00Z",
        "finishedAt": "2026-03-01T10:00:30.25Z",
    }
    statuses = [{"name": "main", "state": {"terminated": terminated}}]
    return pod(
        spec={"nodeName": "n1"}, status={"phase": phase, "containerStatuses": statuses, **status}
    )


def test_a_pod_of_ours_carries_its_owner_and_what_it_holds() -> None:
    report = pod()
    assert (report.installation, report.workload, report.attempt, report.rank) == (
        "lab",
        "w1",
        2,
        3,
    )
    assert (report.cpu_milli, report.memory_mib) == (1500, 2048)
    assert report.resources == (("nvidia.com/gpu", 4),)


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {**OURS, "berth.dev/installation": "another"},
        {**OURS, "berth.dev/attempt": "-1"},
        {**OURS, "berth.dev/rank": "\u0663"},
        {**OURS, "berth.dev/rank": "9" * 30},
    ],
)
def test_a_pod_that_is_not_surely_ours_is_foreign(labels: Json) -> None:
    assert pod(metadata={"labels": labels}).workload == ""


def unschedulable(message: str) -> Json:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {"conditions": [{**condition, "message": message}]}


@pytest.mark.parametrize(
    ("spec", "status", "phase"),
    [
        ({"schedulingGates": [{"name": "berth.dev/placed"}]}, {}, PodPhase.GATED),
        ({}, {}, PodPhase.WAITING),
        ({}, unschedulable("0/3 nodes"), PodPhase.UNSCHEDULABLE),
        ({"nodeName": "n1"}, {}, PodPhase.SCHEDULED),
        ({"nodeName": "n1"}, {"phase": "Running"}, PodPhase.RUNNING),
        ({"nodeName": "n1"}, {"phase": "Succeeded"}, PodPhase.SUCCEEDED),
        ({"nodeName": "n1"}, {"phase": "Failed"}, PodPhase.FAILED),
        ({"nodeName": "n1"}, {"phase": "Unknown"}, PodPhase.SCHEDULED),
    ],
)
def test_the_phase_follows_from_gates_conditions_and_status(
    spec: Json, status: Json, phase: PodPhase
) -> None:
    assert pod(spec=spec, status=status).phase is phase


def test_the_schedulers_sentence_is_the_reason() -> None:
    report = pod(status=unschedulable("0/3 nodes are available:\n3 Insufficient nvidia.com/gpu."))
    assert report.reason == "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def test_an_end_has_times_code_and_reason() -> None:
    report = ended("Failed", 137, "OOMKilled")
    assert report.started_at == datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC)
    assert report.finished_at == datetime(2026, 3, 1, 10, 0, 30, 250_000, tzinfo=UTC)
    assert (report.exit_code, report.reason) == (137, "OOMKilled")


def test_success_needs_no_reason() -> None:
    assert ended("Succeeded", 0, "Completed").reason == ""


def test_the_pods_own_reason_wins_over_its_containers() -> None:
    assert ended("Failed", 137, "Error", reason="DeadlineExceeded").reason == "DeadlineExceeded"


def test_who_disrupted_a_pod_that_failed_wins_over_its_containers_word() -> None:
    def told(phase: str, word: str, **more: object) -> str:
        disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
        return ended(phase, 143, word, conditions=[{"type": "Ready"}, disrupted], **more).reason

    assert told("Failed", "Error") == "DeletionByPodGC"
    assert told("Failed", "Error", reason="Evicted") == "Evicted"
    assert told("Succeeded", "Completed") == ""
    spared = [{"type": "DisruptionTarget", "status": "False", "reason": "DeletionByPodGC"}]
    assert ended("Failed", 1, "Error", conditions=spared).reason == "Error"


def test_a_container_that_ended_while_the_pod_goes_on_has_not_finished_it() -> None:
    assert ended("Running", 1, "Error").finished_at is None


def test_an_evicted_pod_that_never_ran_has_no_times() -> None:
    report = pod(spec={"nodeName": "n1"}, status={"phase": "Failed", "reason": "Evicted"})
    assert (report.started_at, report.finished_at, report.reason) == (None, None, "Evicted")


def test_why_a_bound_pod_does_not_start_is_said() -> None:
    waiting = {"reason": "ErrImagePull", "message": "no such image"}
    statuses = [{"name": "main", "state": {"waiting": waiting}}]
    report = pod(spec={"nodeName": "n1"}, status={"containerStatuses": statuses})
    assert (report.phase, report.reason) == (PodPhase.SCHEDULED, "ErrImagePull: no such image")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, ""),
        ({"affinity": {}}, ""),
        ({"nodeSelector": {"zone": "a"}}, "nodeSelector"),
        ({"affinity": {"nodeAffinity": {}}}, "affinity"),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, "topologySpreadConstraints"),
    ],
)
def test_a_caught_pod_tells_by_which_field_it_chooses_its_nodes(spec: Json, field: str) -> None:
    caught = pod(metadata={"labels": {NAMES.label_caught: "lab"}}, spec=spec).caught
    assert caught is not None
    assert caught.steered == field


def test_a_pod_on_its_way_out_is_marked() -> None:
    assert pod(metadata={"deletionTimestamp": "2026-03-01T10:00:00Z"}).deleting


def box(cpu: str, **more: str) -> Json:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


def sidecar(cpu: str) -> Json:
    return box(cpu, restartPolicy="Always")


@pytest.mark.parametrize(
    ("first", "held_milli"),
    [
        ([], 1500),
        ([box("1")], 1500),
        ([box("4")], 4000),
        ([sidecar("250m"), box("1")], 1750),
        ([sidecar("250m"), box("4")], 4250),
        ([box("4"), sidecar("250m")], 4000),
        ([sidecar("1"), box("4"), sidecar("2"), box("3")], 6000),
    ],
)
def test_sidecars_run_beside_all_that_starts_after_them(
    first: list[Json], held_milli: int
) -> None:
    spec = {"containers": [box("1"), box("500m")], "initContainers": first}
    assert pod(spec=spec).cpu_milli == held_milli


def test_what_a_pod_asks_for_as_a_whole_goes_before_its_containers() -> None:
    whole = {"requests": {"cpu": "64"}, "limits": {"cpu": "96", "memory": "1Ti"}}
    report = pod(spec={"resources": whole})
    assert (report.cpu_milli, report.memory_mib) == (64_000, 2048)
    assert report.resources == (("nvidia.com/gpu", 4),)


def test_what_its_runtime_needs_comes_on_top() -> None:
    report = pod(spec={"overhead": {"cpu": "250m", "memory": "1Gi"}})
    assert (report.cpu_milli, report.memory_mib) == (1750, 3072)


@pytest.mark.parametrize("kind", ["no kind", "", 7, "a" * 300])
@pytest.mark.parametrize("gated", [True, False])
def test_no_owner_that_makes_no_sense_hides_a_caught_pod(kind: object, gated: bool) -> None:
    odd = {"apiVersion": "v1", "kind": kind, "name": "x", "uid": "x", "controller": True}
    metadata = {"labels": {**OURS, "berth.dev/caught": "lab"}, "ownerReferences": [odd]}
    spec = {"schedulingGates": [{"name": "berth.dev/placed"}]} if gated else {"nodeName": "n1"}
    report = pod(metadata=metadata, spec=spec)
    assert report.workload == "w1"
    assert report.caught is not None
    assert report.caught.owner is None


def test_the_owners_of_a_pod_that_runs_are_not_looked_at() -> None:
    metadata = {
        "labels": {**OURS, "berth.dev/caught": "lab"},
        "ownerReferences": [{"uid": str(nth)} for nth in range(1001)],
    }
    assert pod(metadata=metadata, spec={"nodeName": "n1"}).caught is not None


def test_no_number_of_labels_hides_a_pod_of_ours() -> None:
    many = {f"a/{nth}": "" for nth in range(1000)}
    assert pod(metadata={"labels": {**many, **OURS}}).workload == "w1"


def test_a_limit_without_a_request_is_held_too() -> None:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2", "memory": "1"}}}
    report = pod(spec={"containers": [container]})
    assert (report.memory_mib, report.resources) == (1, (("nvidia.com/gpu", 2),))


@pytest.mark.parametrize(
    "part",
    [
        {"metadata": {"uid": ""}},
        {"metadata": {"uid": "a" * 300}},
        {"metadata": {"name": "a\x00b"}},
        {"metadata": {"name": 7}},
        {"metadata": {"resourceVersion": None}},
        {"spec": {"containers": "main"}},
        {"spec": {"containers": [7]}},
        {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "-1"}}}]}},
        {"status": {"containerStatuses": [{"name": "main", "state": 3}]}},
        {"spec": {"nodeName": {"not": "a name"}}},
    ],
)
def test_a_pod_that_makes_no_sense_is_malformed(part: dict[str, Json]) -> None:
    with pytest.raises(Malformed):
        pod(**part)


@pytest.mark.parametrize("at", ["yesterday", "0001-01-01T00:00:00Z", "2026-03-01T10:00:00", 7])
def test_a_time_that_is_none_is_malformed(at: object) -> None:
    statuses = [{"name": "main", "state": {"running": {"startedAt": at}}}]
    with pytest.raises(Malformed):
        pod(status={"phase": "Running", "containerStatuses": statuses})


def test_nonsense_in_a_list_harms_only_itself_and_is_told() -> None:
    broken = pod_body(metadata={"name": "evil\nname\x1b[31m", "uid": None})
    reports, left_out = translate.readable(
        [pod_body(), broken, None, [], 7, pod_body()], partial(translate.pod, names=NAMES)
    )
    assert len(reports) == 2
    assert len(left_out) == 4
    assert left_out[0] == "evil name?[31m: name is no name"
    assert left_out[1] == "one without a name: it is no object"
    assert not any("\n" in told or "\x1b" in told for told in left_out)


SCALARS = st.none() | st.booleans() | st.integers() | st.text("a0:\0\u0661", max_size=4)
OBJECTS = st.dictionaries(st.sampled_from(["name", "key", "type", "state", "x"]), SCALARS)
JSON = SCALARS | OBJECTS | st.lists(SCALARS | OBJECTS, max_size=3)
FIELDS = {
    "metadata": ["name", "namespace", "uid", "resourceVersion", "labels"],
    "spec": ["nodeName", "containers", "initContainers", "schedulingGates", "taints"],
    "status": ["phase", "reason", "conditions", "containerStatuses", "allocatable", "capacity"],
}
PLACES = st.sampled_from([(part, name) for part, names in FIELDS.items() for name in (*names, "")])


@given(st.dictionaries(PLACES, JSON, max_size=4))
def test_any_json_becomes_a_report_or_is_left_out(changes: dict[tuple[str, str], object]) -> None:
    body = pod_body()
    for (part, field), value in changes.items():
        body[part] = {**body[part], field: value} if field and body[part] else value
        if not isinstance(body[part], dict):
            break
    translate.readable([body], partial(translate.pod, names=NAMES))
    translate.readable([body], partial(translate.node, names=NAMES))


def test_devices_that_a_foreign_pod_has_by_a_claim_are_not_counted_too() -> None:
    mapped = [{"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "r"}]
    told = {"extendedResourceClaimStatus": {"requestMappings": mapped}}
    assert pod(metadata={"labels": {}}, status=told).resources == ()
    assert pod(metadata={"labels": {}}).resources == (("nvidia.com/gpu", 4),)
