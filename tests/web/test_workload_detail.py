"""/workloads/<id>: timeline, why it waits, where it runs, what it cost."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.urls import reverse

from clusters.models import DeviceMode, FlavorKind, Node
from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.core.snapshot import SCHEMA
from scheduler.models import (
    CycleInput,
    Estimate,
    Operation,
    OperationKind,
    Workload,
    WorkloadEvent,
)
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop, move


def url(workload: Workload) -> str:
    return reverse("workload-detail", args=[workload.id])


def test_waiting_work_shows_its_reason_with_numbers_and_when_it_starts(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    page = browse(cast.ben).get(url(shop.waiting)).content.decode()
    assert "1 asked, 0 free in one cluster." in page
    assert "<dt>asked</dt><dd>1</dd>" in page
    assert "<dt>free</dt><dd>0</dd>" in page
    assert "Probably by" in page
    assert "nine times in ten by" in page
    assert "Number 1 in the queue of Detection" in page


def test_waiting_work_shows_what_orders_it(browse: Browse, cast: Cast, shop: Shop) -> None:
    client = browse(cast.ben)
    page = client.get(url(shop.waiting)).content.decode()
    assert "<dt>Priority</dt><dd>normal (0)</dd>" in page
    for name in ("Vision Lab", "Detection"):
        assert f"<dt>{name}</dt>" in page
    assert page.count("0.0 % over guarantee, 0.0 % used before") == 2
    assert "What orders it" not in client.get(url(shop.running)).content.decode()


def test_it_names_the_cycle_that_holds_it_and_whether_that_can_be_planned_again(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    shop.waiting.refresh_from_db()
    assert shop.waiting.reason_at is not None
    cycle = factories.cycle(at=shop.waiting.reason_at)
    client = browse(cast.ben)
    page = client.get(url(shop.waiting)).content.decode()
    assert f"decided by cycle <code>{cycle.id}</code>" in page
    assert "to be planned again" not in page
    CycleInput.objects.create(cycle=cycle, payload=b"", start_byte=0, schema=SCHEMA)
    page = client.get(url(shop.waiting)).content.decode()
    assert f"decided by cycle <code>{cycle.id}</code> (kept, to be planned again)" in page


def test_without_a_basis_it_says_so_and_names_no_time(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    Estimate.objects.all().delete()
    assert "Not estimated yet" in browse(cast.ben).get(url(shop.waiting)).content.decode()
    factories.estimate(shop.waiting, p50_s=None, p90_s=None)
    page = browse(cast.ben).get(url(shop.waiting)).content.decode()
    assert "No basis for an estimate" in page
    assert "nine times in ten" not in page


def test_half_known_estimates_promise_no_bound(browse: Browse, cast: Cast, shop: Shop) -> None:
    Estimate.objects.all().delete()
    factories.estimate(shop.waiting, p50_s=3600, p90_s=None)
    page = browse(cast.ben).get(url(shop.waiting)).content.decode()
    assert "but it may take over a week" in page


@pytest.mark.parametrize(
    ("required", "asked"), [(True, "one rack"), (False, "one rack if it can be")]
)
def test_work_that_wants_to_be_together_shows_what_it_asked_and_the_domain_it_got(
    browse: Browse, cast: Cast, shop: Shop, required: bool, asked: str
) -> None:
    client = browse(cast.ben)
    assert "All pods in" not in client.get(url(shop.running)).content.decode()
    Workload.objects.filter(id=shop.running.id).update(
        topology_level="rack", topology_required=required
    )
    zone, rack = "topology.kubernetes.io/zone", "network.topology.nvidia.com/leaf"
    Node.objects.update(labels={zone: "z1", rack: "r7"})
    page = client.get(url(shop.running)).content.decode()
    assert f"<dt>All pods in</dt><dd>{asked}</dd>" in page
    assert "All its pods stand in zone <b>z1</b>, rack <b>r7</b>." in page
    other = factories.node(shop.north, "n9", labels={zone: "z1", rack: "r8"})
    placed = shop.running.placements.first()
    assert placed is not None
    factories.place(shop.running, other, placed.flavor, rank=9)
    page = client.get(url(shop.running)).content.decode()
    assert "All its pods stand in zone <b>z1</b>." in page


@pytest.mark.parametrize(
    ("size", "required", "asked"),
    [
        (None, True, "all of them in one rack"),
        (1, False, "each 1 by rank in one rack if it can be"),
    ],
)
def test_a_pod_set_shows_in_what_its_pods_have_to_be(
    browse: Browse, cast: Cast, shop: Shop, size: int | None, required: bool, asked: str
) -> None:
    shown = url(shop.running)
    assert "<dt>Together</dt>" not in browse(cast.ben).get(shown).content.decode()
    shop.running.pod_sets.update(
        topology_level="rack", topology_required=required, topology_group_size=size
    )
    assert f"<dt>Together</dt><dd>{asked}</dd>" in browse(cast.ben).get(shown).content.decode()


def test_running_work_shows_where_and_that_the_kubelet_picks_the_device(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    page = browse(cast.ben).get(url(shop.running)).content.decode()
    assert "GPU 0, whole*" in page
    assert "n1" in page
    assert "the kubelet picks the physical GPU" in page
    assert "exact device" not in page


@pytest.mark.parametrize(
    ("profile", "start", "end", "text"),
    [("4g.24gb", 0, 4, "GPU 0, whole*"), ("2g.12gb", 2, 4, "GPU 0, memory slices 2-3 of 4*")],
)
def test_a_device_of_four_slices_has_four(
    browse: Browse, cast: Cast, shop: Shop, profile: str, start: int, end: int, text: str
) -> None:
    a30 = factories.flavor("a30", FlavorKind.MIG, model="NVIDIA-A30", profile=profile)
    node = factories.node(
        shop.north, "n3", gpus=1, model="NVIDIA-A30", mode=DeviceMode.MIG_DYNAMIC
    )
    work = factories.workload(cast.detection, cast.ben, [a30], state=State.RUNNING)
    factories.span(factories.place(work, node, a30), node.devices.get(), start, end)
    assert text in browse(cast.ben).get(url(work)).content.decode()


@pytest.mark.parametrize(
    ("isolation", "tag"), [("none", "no isolation"), ("memory", "memory limits only")]
)
def test_beside_a_share_stands_what_keeps_its_neighbours_apart(
    browse: Browse, cast: Cast, shop: Shop, isolation: str, tag: str
) -> None:
    shared = factories.flavor(
        "a10.share", FlavorKind.SHARE, model="NVIDIA-A10", isolation=isolation
    )
    node = factories.node(
        shop.north, "n3", gpus=1, model="NVIDIA-A10", share_isolation=isolation, share_replicas=4
    )
    work = factories.workload(cast.detection, cast.ben, [shared], state=State.RUNNING)
    factories.span(factories.place(work, node, shared), node.devices.get(), 0, 250)
    page = browse(cast.ben)
    assert f'a10.share <span class="tag">{tag}</span>' in page.get(url(work)).content.decode()
    assert "isolation" not in page.get(url(shop.running)).content.decode()


def test_a_known_device_needs_no_such_note(browse: Browse, cast: Cast, shop: Shop) -> None:
    type(shop.device).objects.filter(id=shop.device.id).update(uuid="GPU-1")
    page = browse(cast.ben).get(url(shop.running)).content.decode()
    assert "GPU 0, whole<" in page
    assert "the kubelet picks" not in page
    assert "It is this exact device" in page


def test_cost_is_the_ledger_and_what_runs_since(
    browse: Browse, cast: Cast, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.charge(factories.usage(shop.placed, hours=1), shop.rate, "2.50")
    later = factories.AT + timedelta(hours=3)
    type(shop.placed).objects.update(metered_until=factories.AT + timedelta(hours=1))
    monkeypatch.setattr(clock, "now", lambda: later)
    answer = browse(cast.ben).get(url(shop.running))
    assert "€7.50" in answer.content.decode()
    assert "€2.50 charged, €5.00 since the last metering" in " ".join(
        answer.content.decode().split()
    )


def test_a_viewer_sees_the_work_but_no_cost(browse: Browse, cast: Cast, shop: Shop) -> None:
    page = browse(cast.vik).get(url(shop.running)).content.decode()
    assert "detector" in page
    assert "Cost so far" not in page
    assert "Cancel workload" not in page


def test_values_of_the_environment_are_not_shown(browse: Browse, cast: Cast, shop: Shop) -> None:
    shop.running.pod_sets.update(env={"WANDB_API_KEY": "topsecret"})
    page = browse(cast.ben).get(url(shop.running)).content.decode()
    assert "WANDB_API_KEY" in page
    assert "topsecret" not in page


@pytest.mark.parametrize("who", ["cleo"])
def test_foreign_and_missing_ids_are_the_same_404(
    browse: Browse, cast: Cast, shop: Shop, who: str
) -> None:
    client = browse(getattr(cast, who))
    foreign = client.get(url(shop.running))
    missing = client.get(reverse("workload-detail", args=[uuid4()]))
    assert foreign.status_code == missing.status_code == 404
    assert foreign.content == missing.content


def test_live_work_polls_and_ended_work_stops(
    browse: Browse, cast: Cast, shop: Shop, settled: None
) -> None:
    client = browse(cast.ben)
    first = client.get(url(shop.running))
    assert 'hx-trigger="every 3s"' in first.content.decode()
    rev = first.context["rev"]
    assert client.get(url(shop.running), {"rev": rev}, headers=HTMX).status_code == 204
    move(shop.running, State.SUCCEEDED, ended_at=factories.AT)
    WorkloadEvent.objects.create(
        workload=shop.running, at=factories.AT, kind="state", before="RUNNING", after="SUCCEEDED"
    )
    last = client.get(url(shop.running), {"rev": rev}, headers=HTMX)
    assert last.status_code == 200
    assert last.content.lstrip().startswith(b'<div id="workload"')
    assert b"hx-trigger" not in last.content
    assert b"Cancel workload" not in last.content


def test_it_rejects_post(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert browse(cast.ben).post(url(shop.running)).status_code == 405


def test_names_are_escaped(browse: Browse, cast: Cast, shop: Shop) -> None:
    Workload.objects.filter(id=shop.running.id).update(name="<script>alert(1)</script>")
    assert "<script>alert" not in browse(cast.ben).get(url(shop.running)).content.decode()


@pytest.mark.parametrize(
    ("state", "kind", "words"),
    [
        (State.ADMITTED, OperationKind.START, "Starting its pods there failed 3 times"),
        (State.CANCELLING, OperationKind.STOP, "Stopping its pods there failed 3 times"),
        (State.PREEMPTING, OperationKind.STOP, "Stopping its pods there failed 3 times"),
    ],
)
def test_a_cluster_that_does_not_take_it_is_told_of(
    browse: Browse, cast: Cast, shop: Shop, state: State, kind: OperationKind, words: str
) -> None:
    move(shop.running, state)
    wanted = Operation.objects.create(attempt=shop.placed.attempt, kind=kind)
    quiet = browse(cast.ben).get(url(shop.running)).content.decode()
    assert "its pods there failed" not in quiet
    Operation.objects.filter(id=wanted.id).update(failures=3, last_error="<quota> exceeded")
    page = browse(cast.ben).get(url(shop.running)).content.decode()
    assert words in page
    assert "&lt;quota&gt; exceeded" in page
    assert "The next try is due at" in page
    Operation.objects.update(done_at=clock.now())
    assert "its pods there failed" not in browse(cast.ben).get(url(shop.running)).content.decode()


def test_running_work_tells_of_no_start(browse: Browse, cast: Cast, shop: Shop) -> None:
    Operation.objects.create(attempt=shop.placed.attempt, kind=OperationKind.START, failures=2)
    assert "its pods there failed" not in browse(cast.ben).get(url(shop.running)).content.decode()


def test_of_a_gang_that_comes_and_goes_it_shows_how_much_of_it_runs(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    shop.running.pod_sets.update(count=4)
    page = browse(cast.ben).get(url(shop.running)).content.decode()
    assert "<dt>Pods</dt><dd>1 of 4, at least 1 together</dd>" in page
    WorkloadEvent.objects.create(
        workload=shop.running, at=factories.AT, kind="grown", message="2 more; 3 of 4 pods"
    )
    page = browse(cast.ben).get(url(shop.running)).content.decode()
    assert "Grown" in page
    assert "2 more; 3 of 4 pods" in page
