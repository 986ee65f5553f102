"""Who runs Berth sees a stop of admission: in the probe, the numbers and the back office."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from controlplane.kernel import clock
from scheduler.models import InvariantCheck
from tenants.models import User
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

FOUND = "P1: device 7 is held twice: by 8 and by 9."


def check(*violations: str, accepted: bool = False, ago: timedelta = timedelta(minutes=2)) -> None:
    at = clock.now() - ago
    InvariantCheck.objects.create(
        at=at, took_ms=3, violations=list(violations), accepted_at=at if accepted else None
    )


def numbers(cast: Cast) -> dict[str, float]:
    client = APIClient(headers=factories.bearer(factories.token(cast.oz)))
    lines = client.get("/metrics").content.decode().splitlines()
    found = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(number) for name, number in found}


def test_before_the_first_check_nothing_is_stopped(api: Api, cast: Cast) -> None:
    assert api(None).get("/readyz").json()["admission"] == "unchecked"
    found = numbers(cast)
    assert found["berth_admission_stopped"] == 0
    assert "berth_invariant_violations" not in found


@pytest.mark.parametrize(
    ("violations", "accepted", "stopped"),
    [((), False, False), ((FOUND,), False, True), ((FOUND,), True, False)],
)
def test_the_probe_and_the_numbers_tell_what_the_newest_check_found(
    api: Api, cast: Cast, violations: tuple[str, ...], accepted: bool, stopped: bool
) -> None:
    check(*violations, accepted=accepted)
    answer = api(None).get("/readyz")
    assert answer.status_code == 200, "a restart would not cure it"
    assert answer.json()["admission"] == ("stopped" if stopped else "ok")
    assert "device" not in answer.content.decode(), "anybody may ask"
    found = numbers(cast)
    assert found["berth_admission_stopped"] == stopped
    assert found["berth_invariant_violations"] == len(violations)
    assert found["berth_invariant_check_age_seconds"] == pytest.approx(120, abs=30)


def test_the_back_office_shows_what_was_found(cast: Cast) -> None:
    check(FOUND)
    client = Client()
    client.force_login(factories.user("sue", is_staff=True))
    html = client.get(reverse("admin:scheduler_invariantcheck_changelist")).content.decode()
    assert FOUND in html


def test_the_probe_tells_that_no_check_gets_done(api: Api, cast: Cast) -> None:
    check(ago=timedelta(minutes=16))
    assert api(None).get("/readyz").json()["admission"] == "unchecked"
    check(ago=timedelta(minutes=14))
    assert api(None).get("/readyz").json()["admission"] == "ok"
    check(FOUND, ago=timedelta(minutes=13))
    assert api(None).get("/readyz").json()["admission"] == "stopped"
