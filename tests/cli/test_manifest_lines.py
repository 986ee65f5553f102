"""Where a manifest's faults, notes and parts stand: each told once, by its line and field."""

import pytest

from tests.cli.test_manifest import JOB, POD, changed, read, refusals

pytestmark = pytest.mark.part_web

CONTAINER = "spec.template.spec.containers[0]"
LIMITS = f"{CONTAINER}.resources.limits"
HUGE = "1" + "0" * 30
GANG = "out of range: from 1 to 4096"
GPUS = f"line 28: {LIMITS}.nvidia.com/gpu: out of range: from 1 to 64"
MEMORY = f"line 27: {LIMITS}.memory"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("parallelism: 2", "parallelism: -2", f"line 8: spec.parallelism: {GANG}"),
        ("parallelism: 2", "parallelism: 0", f"line 8: spec.parallelism: {GANG}"),
        ("parallelism: 2", f"parallelism: {HUGE}", f"line 8: spec.parallelism: {GANG}"),
        ("completions: 2", f"completions: {HUGE}", f"line 9: spec.completions: {GANG}"),
        (
            "parallelism: 2",
            "parallelism: two",
            "line 8: spec.parallelism: a whole number from 1 to 4096 is wanted",
        ),
        ("gpu: 8", f"gpu: {HUGE}", GPUS),
        ("gpu: 8", "gpu: 1.0e+30", GPUS),
        ("gpu: 8", "gpu: 65", GPUS),
        ("gpu: 8", "gpu: 0", GPUS),
        ("gpu: 8", "gpu: -1", GPUS),
        ("gpu: 8", "gpu: 0.5", GPUS.replace("out of range:", "a whole number") + " is wanted"),
        (
            "memory: 16Gi",
            f"memory: {HUGE}",
            f"{MEMORY}: out of range: more than 0 and at most 64Ti",
        ),
        ("memory: 16Gi", "memory: lots", f"{MEMORY}: a quantity is wanted: 500m, 4, 16Gi"),
    ],
)
def test_a_fault_is_said_once_with_the_bounds(old: str, new: str, said: str) -> None:
    assert changed(old, new, JOB) == [said]


def test_limits_of_the_wrong_kind_are_not_called_missing() -> None:
    lines = JOB.splitlines()
    lines[24:] = ["          limits: 5"]
    assert refusals("\n".join(lines)) == [f"line 25: {LIMITS}: a mapping is wanted, not a number"]


def test_a_job_that_leaves_out_its_retries_is_taken_with_a_note() -> None:
    found = read(JOB.replace("  backoffLimit: 0\n", ""))
    assert found.body | {"retries": {"limit": 0, "on": []}} == read(JOB).body
    assert "retries" not in found.body
    (note,) = found.notes
    assert note.startswith("line 7: spec.backoffLimit: left out: Kubernetes would run failed pods")
    assert note.endswith("Berth tries again what its cluster did, not what the work did")
    assert read(JOB).notes == ()


def test_of_a_pod_it_is_told_that_it_may_be_made_again() -> None:
    (note,) = read(POD).notes
    assert "Kubernetes would not make it again; Berth tries again what its cluster did" in note
    assert "restartPolicy" in note


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("/name", "line 4: metadata.name"),
        ("/labels/team", "line 6: metadata.labels.team"),
        ("/run_time_limit_s", "line 11: spec.activeDeadlineSeconds"),
        ("/priority_class", "line 15: spec.template.spec.priorityClassName"),
        ("/pod_sets", f"line 28: {LIMITS}.nvidia.com/gpu"),
        ("/pod_sets/0", f"line 17: {CONTAINER}"),
        ("/pod_sets/0/count", "line 8: spec.parallelism"),
        ("/pod_sets/0/image", f"line 18: {CONTAINER}.image"),
        ("/pod_sets/0/args", f"line 20: {CONTAINER}.args"),
        ("/pod_sets/0/env/LEVEL", f"line 22: {CONTAINER}.env[0]"),
        ("/pod_sets/0/cpu_milli", f"line 26: {LIMITS}.cpu"),
        ("/pod_sets/0/memory_mib", f"line 27: {LIMITS}.memory"),
        ("/pod_sets/0/gpu_count", f"line 28: {LIMITS}.nvidia.com/gpu"),
    ],
)
def test_each_part_of_the_body_knows_its_line(pointer: str, place: str) -> None:
    assert read(JOB).places[pointer] == place


def test_a_label_with_a_slash_is_found_by_its_pointer() -> None:
    text = POD.replace("  name: notebook", "  name: n\n  labels: {a/b~c: x}")
    assert "/labels/a~1b~0c" in read(text).places
