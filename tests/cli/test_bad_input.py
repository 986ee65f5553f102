"""Manifests that are refused: told by the line or the option at fault, and nothing stored."""

import pytest

from clusters.models import DeviceMode
from scheduler.models import Workload
from tests import factories
from tests.cli.conftest import Berth
from tests.cli.test_manifest import JOB, POD
from tests.cli.test_manifest_lines import LIMITS
from tests.conftest import Cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.part_web]

GPU_LINE = f"job.yaml: line 28: {LIMITS}.nvidia.com/gpu"


def refused(berth: Berth, text: str, *options: str, project: str = "detection") -> list[str]:
    """What the command says of a manifest in job.yaml, beside notes; it stores nothing."""
    done = berth("submit", "--project", project, *options, manifest=text)
    assert done.exit_code == 1, done.output
    assert not Workload.objects.exists()
    return [line for line in done.output.splitlines() if not line.startswith("Note: ")]


@pytest.mark.parametrize(
    ("hostile", "kind"),
    [
        ("a\u202egpj.exe", "U+202E at position 2 is a bidirectional control"),
        ("a\u200bb", "U+200B at position 2 is an invisible format character"),
    ],
)
def test_a_name_that_deceives_is_refused_at_its_line(
    berth: Berth, hostile: str, kind: str
) -> None:
    lines = refused(berth, JOB.replace("name: train", f"name: {hostile}"))
    assert lines == [
        "Error: The input is not acceptable:",
        f"job.yaml: line 4: metadata.name: {kind}: not accepted in a name.",
    ]


def test_a_hostile_label_does_not_reach_the_terminal(berth: Berth) -> None:
    said = "\n".join(refused(berth, JOB.replace("team: vision", "te\u202eam: vision")))
    assert "line 6: metadata.labels.te?am: " in said
    assert "\u202e" not in said


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("parallelism: 2", "parallelism: -2", "line 8: spec.parallelism"),
        ("parallelism: 2", f"parallelism: 1{'0' * 30}", "line 8: spec.parallelism"),
        ("gpu: 8", f"gpu: 1{'0' * 30}", f"line 28: {LIMITS}.nvidia.com/gpu"),
    ],
)
def test_counts_out_of_range_are_not_even_sent(
    berth: Berth, old: str, new: str, line: str
) -> None:
    lines = refused(berth, JOB.replace(old, new))
    assert lines[0] == "Error: the manifest is not accepted:"
    assert [each.partition(": out of range: from 1 to ")[0] for each in lines[1:]] == [
        f"job.yaml: {line}"
    ]


def test_a_pod_larger_than_any_node_has_its_line_and_the_numbers(berth: Berth) -> None:
    title, line = refused(berth, JOB.replace("gpu: 8", "gpu: 17"))
    assert title == "Error: It is larger than the hardware:"
    assert line.startswith(f"{GPU_LINE}: Larger than the hardware: 2 pods of up to 17")


def test_more_than_the_quota_could_ever_allow_has_its_line_and_the_numbers(
    berth: Berth, cast: Cast
) -> None:
    south = factories.cluster("south")
    for name in ("s1", "s2"):
        factories.node(south, name, gpus=16)
    title, line = refused(berth, JOB.replace("gpu: 8", "gpu: 9"))
    assert title == "Error: It could never start:"
    asked = "18 asked; the project may hold at most 16 h100-80gb"
    assert line.startswith(f"job.yaml: line 8: spec.parallelism: {asked}")


def test_a_mig_profile_that_no_device_has_is_refused_at_its_line(berth: Berth, cast: Cast) -> None:
    factories.quota(cast.detection, factories.mig_flavor(), 4000)
    title, line = refused(berth, POD)
    assert title == "Error: No accepted cluster has the flavor:"
    assert line == (
        "job.yaml: line 18: spec.containers[0].resources.limits.nvidia.com/mig-1g.10gb: "
        "No accepted cluster has h100-1g.10gb."
    )


def test_a_static_slice_of_another_profile_is_none_of_it(berth: Berth, cast: Cast) -> None:
    node = factories.node(factories.cluster("south"), "s1", gpus=0)
    factories.device_slice(factories.device(node, mode=DeviceMode.MIG_STATIC), "3g.40gb", 0, 4)
    factories.quota(cast.detection, factories.mig_flavor(), 4000)
    assert refused(berth, POD)[0] == "Error: No accepted cluster has the flavor:"


def test_the_id_of_a_strangers_project_is_answered_as_if_there_were_none(
    berth: Berth, cast: Cast
) -> None:
    said = [refused(berth, JOB, project=str(cast.dialogue.id))]
    said.append(refused(berth, JOB, project="00000000-0000-7000-8000-000000000000"))
    assert said[0] == said[1]
    assert said[0][0].startswith("Error: No such object: ")


def test_a_wish_of_the_command_line_is_told_as_its_option(berth: Berth) -> None:
    title, line = refused(berth, JOB, "--cluster", "nowhere")
    assert title == "Error: The input is not acceptable:"
    assert line.startswith("--cluster: There is no cluster 'nowhere'")


def test_a_job_without_retries_is_submitted_with_a_note(berth: Berth) -> None:
    text = JOB.replace("  backoffLimit: 0\n", "")
    done = berth("submit", "--project", "detection", manifest=text)
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("Note: job.yaml: line 7: spec.backoffLimit: left out: ")
    assert done.stdout == f"workload {Workload.objects.get().id} PENDING\n"
