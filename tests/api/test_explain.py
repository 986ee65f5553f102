"""POST /workloads/dry-run and GET /workloads/{id}/explanation: what they say, and what they leave
as it was."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from rest_framework.test import APIClient

from clusters.models import Cluster, Flavor
from controlplane.kernel import clock
from controlplane.kernel.throttle import Throttle
from scheduler.core.lifecycle import State
from scheduler.core.snapshot import SCHEMA
from scheduler.models import CycleInput, InvariantCheck, Workload, WorkloadEvent
from scheduler.services import asking
from scheduler.web import details, explanations
from tenants.models import Project, User, UserSession
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]
type Json = dict[str, Any]  # Any: JSON values

DRY_RUN = "/api/v1/workloads/dry-run"
A100 = "NVIDIA-A100-SXM4-80GB"
pytestmark = pytest.mark.usefixtures("one_moment")


@pytest.fixture(autouse=True)
def fleet(cast: Cast) -> None:
    """Eight H100s, of which Dialogue of Speech Lab holds six by two workloads; four A100s."""
    node = factories.node(factories.cluster("north"), "n1")
    h100, a100 = factories.flavor(), factories.flavor("a100-80gb", model=A100)
    south = factories.node(factories.cluster("south"), "s1", gpus=0)
    for ordinal in range(4):
        factories.device(south, ordinal, model=A100)
    factories.quota(cast.detection, h100)
    factories.quota(cast.detection, a100, 4000)
    factories.quota(cast.dialogue, h100)
    for first in (0, 3):
        running = factories.workload(
            cast.dialogue,
            cast.cleo,
            [h100],
            "secret-plan",
            state=State.RUNNING,
            preemptible=False,
            run_time_limit_s=3600,
            started_at=clock.now() - timedelta(seconds=600 + first),
        )
        placed = factories.place(running, node, h100, amount_milli=3000)
        for ordinal in range(first, first + 3):
            factories.span(placed, node.devices.get(ordinal=ordinal))


def asked(cast: Cast, **pod_set: object) -> Json:
    small = {"cpu_milli": 1000, "memory_mib": 1024}
    return factories.submission(cast.detection, pod_set=small | pod_set)


def rows() -> dict[str, int]:
    return {
        model._meta.label: model._default_manager.count()
        for model in apps.get_models()
        if model is not UserSession  # who asks is signed in
    }


def signed_in(api: Api, user: User) -> tuple[APIClient, dict[str, int]]:
    """The user's client, and how many rows there are then."""
    client = api(user)
    return client, rows()


def check_of(told: Json, state: str) -> list[Json]:
    options = [check for option in told["options"] for check in option["checks"]]
    return [check for check in (*told["checks"], *options) if check["state"] == state]


def test_a_dry_run_says_where_it_would_start_and_stores_nothing(api: Api, cast: Cast) -> None:
    client, before = signed_in(api, cast.ben)
    answer = client.post(DRY_RUN, asked(cast, gpu_count=2), format="json")
    assert answer.status_code == 200, answer.content
    told = answer.json()
    choice = told["start"].pop("choice")
    assert told["start"] == {"cluster": "north", "flavors": ["h100-80gb"], "pods": 1}
    assert [(each["cluster"], each["verdict"]) for each in choice["clusters"]] == [
        ("north", "chosen"),
        ("south", "full"),
    ]
    assert (told["reason"], told["relaxations"], told["estimate"]) == (None, [], None)
    assert check_of(told, "failed") + check_of(told, "not-reached") == []
    assert rows() == before


def test_a_dry_run_says_what_is_charged_in_each_cluster_where_that_differs(
    api: Api, cast: Cast
) -> None:
    """Both have room: by what is free it would be the other."""
    h100, south = Flavor.objects.get(name="h100-80gb"), Cluster.objects.get(name="south")
    factories.device(south.nodes.get(), 4)
    factories.rate(h100, "2.50")
    factories.rate(h100, "2.75", cluster=south)
    start = api(cast.ben).post(DRY_RUN, asked(cast), format="json").json()["start"]
    assert (start["cluster"], start["choice"]["currency"]) == ("north", "EUR")
    found = [(each["verdict"], each["per_hour"]) for each in start["choice"]["clusters"]]
    assert found == [("chosen", "2.500000"), ("dearer", "2.750000")]


def test_a_dry_run_says_why_it_would_wait_and_what_would_help(api: Api, cast: Cast) -> None:
    client, before = signed_in(api, cast.ben)
    told = client.post(DRY_RUN, asked(cast, count=4), format="json").json()
    assert told["start"] is None
    assert told["reason"]["code"] == "no-free-capacity"
    assert told["reason"]["text"] == "4 h100-80gb asked, 2 free in one cluster."
    assert check_of(told, "failed")[0] == {
        "code": "free", "state": "failed", "value": 4000, "limit": 2000, "unit": "milli",
        "flavor": "h100-80gb", "where": "",
        "text": "Enough is free in one cluster: 4 of at most 2 h100-80gb",
    }  # fmt: skip
    helps = {one["change"]: one for one in told["relaxations"]}
    assert list(helps) == ["flavor", "pods", "wait"]
    assert helps["flavor"]["text"] == "Accept a100-80gb too."
    assert (helps["pods"]["subject"], helps["pods"]["new"]) == ("main", 2)
    assert 2980 <= helps["wait"]["new"] <= 3000
    assert [one["starts_now"] for one in told["relaxations"]] == [True, True, False]
    assert told["estimate"]["basis"] == "limit"
    assert told["estimate"]["p50_s"] > 0
    assert rows() == before


def test_a_dry_run_of_an_array_is_of_one_element_by_the_arrays_rules(api: Api, cast: Cast) -> None:
    client, before = signed_in(api, cast.ben)
    told = client.post(DRY_RUN, asked(cast) | {"size": 9, "most_at_once": 2}, format="json").json()
    assert (told["of_element"], told["start"]["pods"]) == (True, 1)
    assert client.post(DRY_RUN, asked(cast), format="json").json()["of_element"] is False
    for change in ({"size": 0}, {"most_at_once": 2}, {"size": 9, "name": "n" * 98}):
        dry = client.post(DRY_RUN, asked(cast) | change, format="json")
        real = client.post("/api/v1/arrays", asked(cast) | change, format="json")
        assert dry.status_code == 400
        assert dry.json()["errors"] == real.json()["errors"]
    assert rows() == before


def test_what_is_said_is_what_is_described(api: Api, cast: Cast) -> None:
    told = api(cast.ben).post(DRY_RUN, asked(cast, count=4), format="json").json()
    start = api(cast.ben).post(DRY_RUN, asked(cast), format="json").json()["start"]
    for shown, described in (
        (told, explanations.DryRunOut),
        (start, explanations.StartOut),
        (start["choice"], details.ChoiceOut),
        (start["choice"]["clusters"][0], details.OfferOut),
        (told["options"][0], explanations.OptionOut),
        (told["checks"][0], explanations.CheckOut),
        (told["relaxations"][0], explanations.RelaxationOut),
    ):
        assert set(shown) == set(described().fields)


def test_nothing_of_other_tenants_is_told_but_numbers(api: Api, cast: Cast) -> None:
    text = api(cast.ben).post(DRY_RUN, asked(cast, gpu_count=8), format="json").content.decode()
    for secret in ("Speech", "speech", "Dialogue", "dialogue", "secret-plan", "cleo"):
        assert secret not in text
    for id in (cast.dialogue.id, cast.speech.id, *Workload.objects.values_list("id", flat=True)):
        assert str(id) not in text


def test_it_refuses_what_a_submission_refuses_at_the_same_place(api: Api, cast: Cast) -> None:
    for body in (
        asked(cast, gpu_count=9),
        {**asked(cast), "extra": 1},
        {**asked(cast), "name": ""},
    ):
        dry = api(cast.ben).post(DRY_RUN, body, format="json")
        real = api(cast.ben).post("/api/v1/workloads", body, format="json")
        assert dry.status_code == 400
        assert dry.json()["errors"] == real.json()["errors"]


def test_the_caps_of_its_submitter_count(api: Api, cast: Cast) -> None:
    Project.objects.filter(id=cast.detection.id).update(user_max_gpus_milli=1000)
    told = api(cast.ben).post(DRY_RUN, asked(cast, gpu_count=2), format="json").json()
    assert check_of(told, "failed")[0]["code"] == "caps"
    assert (check_of(told, "failed")[0]["value"], told["options"]) == (2000, [])


def test_while_admission_is_stopped_it_says_so(api: Api, cast: Cast) -> None:
    InvariantCheck.objects.create(at=clock.now(), took_ms=1, violations=["P1 is broken."])
    told = api(cast.ben).post(DRY_RUN, asked(cast), format="json").json()
    assert told["reason"]["code"] == "admission-stopped"
    assert check_of(told, "failed")[0]["code"] == "admitting"


def test_what_waits_is_explained_and_what_runs_is_not(api: Api, cast: Cast) -> None:
    running = Workload.objects.filter(state=State.RUNNING).earliest("id")
    h100 = running.placements.get().flavor
    waiting = factories.workload(
        cast.detection, cast.ben, [h100], pods=4, submitted_at=clock.now()
    )
    client, before = signed_in(api, cast.ben)
    told = client.get(f"/api/v1/workloads/{waiting.id}/explanation").json()
    assert told["reason"]["code"] == "no-free-capacity"
    assert [one["subject"] for one in told["relaxations"]] == ["", "main", ""]
    assert set(told) == set(explanations.ExplanationOut().fields)
    assert told["decided"] is None
    assert rows() == before
    answer = api(cast.cleo).get(f"/api/v1/workloads/{running.id}/explanation")
    assert answer.status_code == 409
    assert answer.json()["detail"].startswith("secret-plan does not wait")


def test_what_waits_and_what_was_started_name_the_cycle_that_decided(api: Api, cast: Cast) -> None:
    at = clock.now()
    cycle = factories.cycle(at=at)
    CycleInput.objects.create(
        cycle=cycle, payload=b"", start_byte=0, digest="d" * 64, schema=SCHEMA
    )
    running = Workload.objects.filter(state=State.RUNNING).earliest("id")
    waiting = factories.workload(
        cast.detection, cast.ben, [running.placements.get().flavor], pods=4, submitted_at=at
    )
    Workload.objects.filter(id=waiting.id).update(reason={"code": "behind"}, reason_at=at)
    client = api(cast.ben)
    told = client.get(f"/api/v1/workloads/{waiting.id}/explanation").json()["decided"]
    assert told.pop("at")
    assert told == {"cycle": str(cycle.id), "digest": "d" * 64, "replayable": True}
    for after in (State.ADMITTED, State.RUNNING):
        WorkloadEvent.objects.create(workload=waiting, at=at, kind="state", after=after)
    items = client.get(f"/api/v1/workloads/{waiting.id}/events").json()["items"]
    by_state = {one["after"]: one["decided"] for one in items}
    assert by_state["ADMITTED"]["cycle"] == str(cycle.id)
    assert by_state["RUNNING"] is None


def test_who_asks_too_often_is_told_when_to_ask_again(
    api: Api, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = Throttle(most=1, window=timedelta(minutes=1))
    monkeypatch.setattr(asking, "ASKED", few)
    assert api(cast.ben).post(DRY_RUN, asked(cast), format="json").status_code == 200
    answer = api(cast.ben).post(DRY_RUN, asked(cast), format="json")
    assert answer.status_code == 429
    assert answer.json()["code"] == "too-often"
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert api(cast.ada).post(DRY_RUN, asked(cast), format="json").status_code == 200
