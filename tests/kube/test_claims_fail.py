"""What goes wrong, or dies, while a caught pod is given the devices that it was placed on: it gets
those and no others all the same, and starts once."""

from collections.abc import Callable, Iterator

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import MERGE_PATCH, Client
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.loop.dispatching.dispatch import dispatch
from scheduler.models import Attempt, Workload
from tests.crash.children import SHORT_S, Children
from tests.crash.rounds import REPEATS
from tests.faults import spoil
from tests.faults.proxy import Asked, Proxy, Spoil
from tests.kube.claiming import bare, claims, given, granted, lab, placed, template
from tests.kube.control_plane import NAMES
from tests.kube.lab import Lab
from tests.networks import LOOPBACK
from tests.simulation import store_credential
from tests.waiting import eventually

__all__ = ["granted", "lab"]

CRASH = "D7"
FAULTS: dict[str, Spoil] = {
    "401": spoil.answer(401),
    "403": spoil.answer(403),
    "409": spoil.answer(409),
    "429": spoil.answer(429, Retry_After="1"),
    "500": spoil.answer(500),
    "503": spoil.answer(503),
    "no answer, not done": spoil.silence_before,
    "no answer, done": spoil.silence_after,
}
REQUESTS: dict[str, Callable[[Asked], bool]] = {
    "claim": lambda asked: asked.method == "POST" and asked.path.endswith("/resourceclaims"),
    "status": lambda asked: asked.method == "PATCH" and asked.path.endswith("/status"),
}


@pytest.fixture
def proxy(lab: Lab, settings: Settings) -> Iterator[Proxy]:
    settings.BERTH_CLAIM_S = settings.BERTH_LEASE_S = SHORT_S
    template(lab, "two", count=2)
    with Proxy(lab.work.kube.server, lab.work.kube.ca_pem) as proxy:
        yield proxy


@pytest.fixture
def children() -> Iterator[Children]:
    """No Redis keeps them from doing what is being done."""
    database = str(connection.settings_dict["NAME"])
    children = Children.start(database=database, REDIS_URL="redis://127.0.0.1:1")
    yield children
    children.stop()


def planned(lab: Lab, name: str) -> Workload:
    """A pod that claims two devices; it has its place, and is about to get them."""
    bare(lab, name, "two")
    lab.take_in()
    lab.cycle()
    work = Workload.objects.exclude(state__in=sorted(TERMINAL)).get()
    assert work.state == State.ADMITTED
    return work


def ends_well(lab: Lab, work: Workload, name: str) -> None:
    """It runs, in its first attempt, on exactly its devices."""
    lab.until_state(work, State.RUNNING)
    assert work.attempts.count() == 1
    own = [found for called, found in claims(lab).items() if called.startswith(_own(work))]
    assert own == placed(work)
    lab.work.kube.admin.delete(f"{lab.work.path}/pods/{name}?gracePeriodSeconds=0")
    lab.until(lambda: Workload.objects.get(id=work.id).state in TERMINAL)
    eventually("its claims go with it", lambda: given(lab) == [])


def _own(work: Workload) -> str:
    """How the names begin of the claims that Berth makes for its pods."""
    return f"w{work.id.hex}"


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_pod_is_given_its_devices_whatever_the_answer_was(
    lab: Lab, proxy: Proxy, request_: str, subtests: pytest.Subtests
) -> None:
    client = Client(
        server=proxy.url,
        identity=lab.work.kube.berth_token,
        allowed=LOOPBACK,
        read_timeout_s=1.5,
    )
    port = KubernetesCluster(client, names=NAMES)
    for nth, (fault, by) in enumerate(FAULTS.items()):
        with subtests.test(fault):
            name = f"train-{nth}"
            work = planned(lab, name)
            rule = proxy.strike(by, where=REQUESTS[request_])
            dispatch(port=port, cluster_id=lab.cluster.id, at=now)
            assert rule.met
            assert lab.gated() == {name}
            ends_well(lab, work, name)
    port.close()


def test_a_pod_that_was_taken_anew_meanwhile_is_given_nothing_by_who_comes_late(
    lab: Lab, proxy: Proxy
) -> None:
    client = Client(server=proxy.url, identity=lab.work.kube.berth_token, allowed=LOOPBACK)
    port = KubernetesCluster(client, names=NAMES)
    work = planned(lab, "train")
    path = f"{lab.work.path}/pods/train"

    def take_anew() -> None:
        body = {"metadata": {"annotations": {"example.org/taken": "anew"}}}
        lab.work.kube.admin.do("PATCH", path, body, content_type=MERGE_PATCH)

    rule = proxy.strike(spoil.meanwhile(take_anew), where=REQUESTS["status"])
    dispatch(port=port, cluster_id=lab.cluster.id, at=now)
    assert rule.met
    claimed = lab.work.kube.admin.get(path)["status"].get("resourceClaimStatuses", [])
    assert not [told for told in claimed if told["resourceClaimName"].startswith(_own(work))]
    ends_well(lab, work, "train")
    port.close()


def test_who_dies_between_the_claim_and_the_pod_that_is_to_have_it_only_delays(
    lab: Lab, proxy: Proxy, children: Children
) -> None:
    """As often as at every other point, in every other round twice."""
    store_credential(lab.cluster, server=proxy.url, token=lab.work.kube.berth_token)
    for nth in range(REPEATS):
        name = f"train-{nth}"
        work = planned(lab, name)
        for _ in range(1 + nth % 2):
            children.run("dispatch", crash=CRASH)
            assert lab.gated() == {name}
            Attempt.objects.filter(claimed_until__gt=Now()).update(claimed_until=Now())
        ends_well(lab, work, name)
