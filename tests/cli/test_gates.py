"""Gates by `berth`, against a real server."""

import json

import pytest

from scheduler.models import Gate, Workload
from tenants.models import Scope
from tests import factories
from tests.cli.conftest import Berth
from tests.cli.test_manifest import JOB
from tests.conftest import Cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.part_web]
SUBMIT = ("submit", "-f", "-", "--project", "detection")


@pytest.fixture
def vik(cast: Cast) -> dict[str, str]:
    """The environment of who keeps the data: a token for gates alone."""
    token = factories.token(cast.vik, Scope.GATE)
    return {"BERTH_TOKEN": factories.bearer(token)["Authorization"].removeprefix("Bearer ")}


def test_it_declares_lists_and_opens_them(berth: Berth, vik: dict[str, str]) -> None:
    done = berth(*SUBMIT, "--gate", "data-ready=vik,data,2d", "--gate", "plan=ada", text_in=JOB)
    assert done.exit_code == 0, done.output
    work = Workload.objects.get()
    rows = Gate.objects.order_by("id")
    assert [(row.name, row.kind, row.owner.username) for row in rows] == [
        ("data-ready", "data", "vik"),
        ("plan", "other", "ada"),
    ]
    assert rows[0].deadline_at is not None
    assert (rows[0].deadline_at - rows[0].created_at).days == 2
    head, line = berth("gate", "list", **vik).output.splitlines()
    assert head.split() == ["WORK", "NAME", "GATE", "KIND", "OWNER", "SINCE", "UNTIL"]
    assert line.split()[:5] == [str(work.id), "train", "data-ready", "data", "vik"]
    done = berth("gate", "open", str(work.id), "data-ready", "--note", "Copied.", **vik)
    assert done.output == "gate data-ready open\n"
    assert json.loads(berth("gate", "list", "-o", "json", **vik).output) == []
    again = berth("gate", "refuse", str(work.id), "data-ready", "--note", "No.", **vik)
    assert "is open since" in again.output


def test_it_refuses_those_of_an_array(berth: Berth, vik: dict[str, str]) -> None:
    done = berth(*SUBMIT, "--array", "2", "--gate", "data-ready=vik", text_in=JOB)
    array = f"array:{done.output.split()[1].rstrip(':')}"
    assert "--note" in berth("gate", "refuse", array, "data-ready", **vik).output
    done = berth("gate", "refuse", array, "data-ready", "--note", "No licence.", **vik)
    assert done.output == "gate data-ready refused\n"
    assert set(Workload.objects.values_list("state", flat=True)) == {"CANCELLED"}


def test_a_dry_run_tells_of_them(berth: Berth) -> None:
    told = berth(*SUBMIT, "--dry-run", "--gate", "data-ready=vik", text_in=JOB).output
    assert "would get the gate data-ready, for vik to open" in told
    assert not Workload.objects.exists()


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("data-ready", "is not a gate, as data-ready=dan"),
        ("data-ready=vik,dinner", "is neither of data, approval, budget, other, nor a time"),
        ("data-ready=nobody", "--gate: Detection has nobody called 'nobody'"),
        ("Data Ready=vik", "--gate: "),
    ],
)
def test_a_gate_that_is_none_is_told_by_its_option(berth: Berth, gate: str, said: str) -> None:
    done = berth(*SUBMIT, "--gate", gate, text_in=JOB)
    assert done.exit_code != 0
    assert said in done.output
    assert not Workload.objects.exists()
