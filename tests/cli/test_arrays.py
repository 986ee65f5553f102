"""Arrays and dependencies by `berth`, against a real server."""

import json

import pytest

from scheduler.loop.preparing import dependencies
from scheduler.models import Dependency, Workload, WorkloadArray
from tests import factories
from tests.cli.conftest import Berth
from tests.cli.test_manifest import JOB

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.part_web]
SUBMIT = ("submit", "-f", "-", "--project", "detection")


def test_it_submits_shows_and_cancels_an_array(berth: Berth) -> None:
    done = berth(*SUBMIT, "--array", "3%2", text_in=JOB)
    array = WorkloadArray.objects.get()
    assert done.output == f"array {array.id}: 3 PENDING\n"
    assert (array.size, array.most_at_once, array.elements.count()) == (3, 2, 3)

    listed = berth("get").output.splitlines()
    assert len(listed) == 2
    assert listed[1].split()[:4] == [f"array:{array.id}", "train", "3", "PENDING"]
    shown = berth("get", f"array:{array.id}").output.splitlines()
    assert [line.split()[1] for line in shown[1:]] == ["train[2]", "train[1]", "train[0]"]
    as_json = json.loads(berth("get", f"array:{array.id}", "-o", "json").output)
    assert as_json["states"]["PENDING"] == 3

    assert berth("cancel", f"array:{array.id}").output == f"array {array.id}: 3 CANCELLED\n"
    assert "has ended already" in berth("cancel", f"array:{array.id}").output


def test_a_dry_run_of_an_array_is_of_one_element_of_it(berth: Berth) -> None:
    told = berth(*SUBMIT, "--dry-run", "--array", "3%2", text_in=JOB).output.splitlines()
    assert told[0] == "of one element of the array:"
    assert told[1] == "would start now on north: 2 pods on h100-80gb"
    done = berth(*SUBMIT, "--dry-run", "--array", "5%6", text_in=JOB)
    assert "--array: 6 is not between 1 and 5." in done.output
    assert not Workload.objects.exists()


def test_it_says_what_is_waited_for(berth: Berth) -> None:
    berth(*SUBMIT, text_in=JOB)
    first = Workload.objects.get()
    berth(*SUBMIT, "--array", "2", "--after-end", str(first.id), text_in=JOB)
    array = WorkloadArray.objects.get()
    done = berth(
        *SUBMIT, "--after-success", f"array:{array.id}", "--after-failure", str(first.id),
        text_in=JOB,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    rows = Dependency.objects.order_by("id").values_list("on_workload", "on_array", "kind")
    assert list(rows) == [
        (first.id, None, "after-end"),
        (None, array.id, "after-success"),
        (first.id, None, "after-failure"),
    ]


def test_it_waits_by_index_is_held_and_released(berth: Berth) -> None:
    berth(*SUBMIT, "--array", "2", text_in=JOB)
    first = WorkloadArray.objects.get()
    done = berth(
        *SUBMIT, "--array", "2", "--after-success", f"array:{first.id}", "--by-index", "--hold",
        text_in=JOB,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    second = WorkloadArray.objects.exclude(id=first.id).get()
    berth("cancel", f"array:{first.id}")
    dependencies.settle(at=factories.AT)
    one = second.elements.get(array_index=0)
    assert berth("release", str(one.id)).output == f"workload {one.id} PENDING\n"
    assert berth("release", f"array:{second.id}").output == f"array {second.id}: 2 PENDING\n"
    assert "waits for nothing in vain" in berth("release", str(one.id)).output


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--hold",), "--by-index and --hold go with --after-success"),
        (("--array", "0-9"), "'0-9' is not a size, as 100, or 100%10 for at most 10 at once."),
        (("--array", "0"), "--array: 0 is not between 1 and 10000."),
        (("--array", "5%6"), "--array: 6 is not between 1 and 5."),
        (
            ("--after-end", "nobody"),
            "--after-success, --after-end or --after-failure: The id of one workload is wanted.",
        ),
    ],
)
def test_it_refuses_by_the_option(berth: Berth, options: tuple[str, str], told: str) -> None:
    done = berth(*SUBMIT, *options, text_in=JOB)
    assert done.exit_code
    assert told in done.output
    assert not Workload.objects.exists()
