"""/workloads/<id>: what is tried again, how it is stopped, and what that cost it."""

from datetime import timedelta

from django.urls import reverse

from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.models import Attempt, AttemptOutcome, Workload
from tests.conftest import Cast
from tests.factories import AT
from tests.web.conftest import Browse, Shop


def page_of(browse: Browse, cast: Cast, workload: Workload) -> str:
    url = reverse("workload-detail", args=[workload.id])
    return browse(cast.ben).get(url).content.decode()


def test_its_terms_say_what_is_tried_again_and_how_it_is_stopped(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    page = page_of(browse, cast, shop.running)
    assert "<dd>4 times if refused, node-lost, evicted</dd>" in page
    assert "<dd>30 s grace</dd>" in page
    Workload.objects.update(
        retry_limit=1, retry_on=["evicted"], retry_exit_codes=[42, 43], grace_s=90, notice_s=300
    )
    page = page_of(browse, cast, shop.running)
    assert "<dd>1 time if evicted, exit code 42 or 43</dd>" in page
    assert "<dd>5 min notice, then 1 min 30 s grace</dd>" in page
    Workload.objects.update(retry_on=[], retry_exit_codes=[])
    assert "<dt>Tried again</dt><dd>never</dd>" in page_of(browse, cast, shop.running)


def test_who_is_given_notice_is_told_until_when_it_runs(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    assert "It is evicted" not in page_of(browse, cast, shop.running)
    until = clock.now() + timedelta(minutes=5)
    Workload.objects.filter(id=shop.running.id).update(
        state=State.PREEMPTING, version=9, notice_until=until
    )
    page = page_of(browse, cast, shop.running)
    assert "It is evicted for the work of others, and runs on until" in page
    assert f'datetime="{until:%Y-%m-%dT%H:%M}' in page
    Workload.objects.filter(id=shop.running.id).update(notice_until=clock.now())
    assert "It is evicted" not in page_of(browse, cast, shop.running)


def test_what_its_attempts_failed_of_and_lost_is_shown(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    assert "GPU-hours" not in page_of(browse, cast, shop.running)
    ended = {"workload": shop.running, "cluster": shop.north, "epoch": 1, "created_at": AT}
    Attempt.objects.create(
        number=90, ended_at=AT, outcome=AttemptOutcome.PREEMPTED, lost_milli_s=2_880_000, **ended
    )
    Attempt.objects.create(
        number=91, ended_at=AT, outcome=AttemptOutcome.LOST, failure="node-lost",
        trouble="its node was lost: NodeLost", lost_milli_s=360_000, **ended,
    )  # fmt: skip
    page = page_of(browse, cast, shop.running)
    assert "<dt>Work lost</dt><dd>0.9 GPU-hours</dd>" in page
    assert "0.8 GPU-hours lost" in page
    assert "its node was lost: NodeLost" in page
