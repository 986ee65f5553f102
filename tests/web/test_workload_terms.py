"""/workloads/<id>: what is tried again, how it is stopped, and what that cost it."""

from datetime import timedelta

from django.urls import reverse
from django.utils.html import strip_tags

from clusters.models import Cluster, ClusterState
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


def test_what_becomes_of_it_when_its_cluster_is_lost_is_told_with_the_moment(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    attempt = Attempt.objects.get(workload=shop.running)
    north = Cluster.objects.filter(id=attempt.cluster_id)
    page = page_of(browse, cast, shop.running)
    assert "<dt>If its cluster is lost</dt><dd>waits for it</dd>" in page
    assert "Nothing was heard" not in page
    since = clock.now() - timedelta(minutes=2)
    north.update(state=ClusterState.DEGRADED, seen_at=since, failing_since=since)
    page = page_of(browse, cast, shop.running)
    assert "Nothing was heard of this cluster since" in page
    assert "It waits for its cluster, as it was submitted." in page

    Workload.objects.filter(id=shop.running.id).update(cluster_loss_requeue_s=900)
    page = page_of(browse, cast, shop.running)
    assert "<dd>starts elsewhere after 15 min</dd>" in page
    then = since + timedelta(minutes=15)
    assert f'it starts elsewhere at <time datetime="{then:%Y-%m-%dT%H:%M}' in page
    north.update(failing_since=None)
    page = strip_tags(page_of(browse, cast, shop.running))
    assert "it starts elsewhere 15 min after the cluster is first asked in vain" in page


def test_what_an_attempt_still_holds_in_a_lost_cluster_is_told_beside_it(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    first = Attempt.objects.get(workload=shop.running)
    Attempt.objects.filter(id=first.id).update(
        ended_at=AT, unseen_since=AT, outcome=AttemptOutcome.LOST, failure="cluster-lost"
    )
    Attempt.objects.create(
        workload=shop.running, number=90, cluster=shop.north, epoch=1, created_at=AT
    )
    page = page_of(browse, cast, shop.running)
    assert "1 pod held and charged there until seen gone" in page
    Attempt.objects.filter(id=first.id).update(unseen_since=None)
    assert "until seen gone" not in page_of(browse, cast, shop.running)
