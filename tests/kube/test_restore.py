"""The drill: a living installation is dumped, lives on, and has the dump put back under its
cluster.

What runs there runs on, and is shown; nothing is started beside it; all that was submitted before
the dump comes to its end.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from clusters.models import Cluster, ClusterState
from clusters.port import PodPhase, PodReport
from controlplane.kernel.clock import now
from scheduler import tasks
from scheduler.core.lifecycle import State
from scheduler.loop.adopting import adopt
from scheduler.models import Attempt, Placement, Stray, Workload
from scheduler.services import workloads
from tenants.models import UsageInterval
from tests import backups
from tests.flows.losing import broken
from tests.flows.world import spec
from tests.kube.control_plane import ControlPlane
from tests.kube.lab import Lab, cluster, lab
from tests.kube.test_cluster_loss import followed
from tests.simulation import store_credential
from tests.waiting import eventually

__all__ = ["cluster", "lab"]

LONG = ("sleep", "600")


def ours(lab: Lab) -> dict[str, PodReport]:
    """By name."""
    return {pod.name: pod for pod in lab.port.list_pods().items if pod.workload}


def running(lab: Lab) -> dict[str, str]:
    """Uids of what runs, by name."""
    return {n: pod.uid for n, pod in ours(lab).items() if pod.phase is PodPhase.RUNNING}


def states() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "state"))


def turn(lab: Lab) -> None:
    """What workers do; the watch is beside it."""
    tasks.run_cycle()
    tasks.dispatch_cluster(cluster_id=str(lab.cluster.id))
    tasks.check_starts()
    tasks.check_clusters()


def turning(lab: Lab, what: str, reached: Callable[[], bool]) -> None:
    def turned() -> bool:
        turn(lab)
        return reached()

    eventually(what, turned)


def until(lab: Lab, what: str, states_are: dict[str, State]) -> None:
    turning(lab, what, lambda: states_are.items() <= states().items())


def remove(lab: Lab, name: str) -> None:
    """By hand, in the cluster."""
    lab.work.kube.admin.delete(f"{lab.work.path}/pods/{name}?gracePeriodSeconds=0")


def cancel(lab: Lab, *names: str) -> None:
    for work in Workload.objects.filter(name__in=names):
        workloads.cancel(actor=lab.ada, workload=work, at=now())


def test_an_old_dump_put_back_under_a_living_cluster_harms_nothing(
    lab: Lab, control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.loop.run.pace.wait", lambda: None)
    monkeypatch.setattr("scheduler.tasks.QUIET_S", 0)
    monkeypatch.setattr("scheduler.loop.observing.settle.PAUSE", timedelta())
    monkeypatch.setattr(adopt, "AGAIN_S", 1.0)
    store_credential(
        lab.cluster,
        server=control_plane.server,
        ca=control_plane.ca_pem,
        token=control_plane.berth_token,
    )
    before = ("over", "stays", "ends", "again", "cancelled", "waits", "gang", "part")
    long = partial(spec, command=LONG, grace_s=1)
    with followed(lab.cluster):
        lab.submit(spec(name="over", command=("sleep", "0")))
        until(lab, "one is over", {"over": State.SUCCEEDED})
        lab.submit(
            long(name="stays"),
            spec(name="ends", command=("sleep", "3")),
            long(name="again"),
            long(name="cancelled"),
        )
        until(lab, "all run", dict.fromkeys(("stays", "again", "cancelled"), State.RUNNING))
        lab.submit(
            long(name="waits", gpus=2),
            long(name="gang", count=2, gpus=4),
            long(name="part", count=2, gpus=2),
        )
    backups.dump(tmp_path / "berth.dump")

    # --- an hour of life ---
    with followed(lab.cluster):
        cancel(lab, "cancelled")
        remove(lab, Placement.objects.get(workload__name="again", released_at=None).pod_name)
        lab.submit(long(name="late"))
        live = dict.fromkeys(("stays", "again", "waits", "gang", "part", "late"), State.RUNNING)
        over = {"ends": State.SUCCEEDED, "cancelled": State.CANCELLED}
        second = Attempt.objects.filter(workload__name="again", number=2)
        turning(lab, "the second attempt is made", second.exists)
        until(lab, "an hour has passed", live | over)
    remove(lab, Placement.objects.get(workload__name="part", rank=1).pod_name)
    ran = running(lab)
    assert len(ran) == 7

    # --- the dump is put back ---
    backups.put_back(tmp_path / "berth.dump")
    assert states()["gang"] == State.PENDING
    for _ in range(3):
        turn(lab)
    north = Cluster.objects.get()
    assert (north.state, north.restored_at is None) == (ClusterState.NEW, False)
    assert not Attempt.objects.filter(workload__name__in=("waits", "gang", "part")).exists()
    assert running(lab) == ran

    with followed(lab.cluster):
        heard = Cluster.objects.filter(state=ClusterState.ACTIVE)
        eventually("it is listed", heard.exists)
        until(
            lab,
            "it is reconciled",
            dict.fromkeys(("stays", "again", "waits", "gang"), State.RUNNING),
        )
        # 0 deleted, nothing doubled, all of it shown.
        known = dict(Placement.objects.filter(released_at=None).values_list("pod_name", "pod_uid"))
        strays = dict(Stray.objects.values_list("name", "uid"))
        assert ran.items() <= running(lab).items()
        assert ran.items() <= (known | strays).items()
        assert len(strays) == 2  # what was submitted since, and a gang that lacks one of its pods
        part = Workload.objects.get(name="part")
        assert (part.state, (part.reason or {}).get("code")) == (State.PENDING, "strays")
        assert Attempt.objects.get(workload__name="again", ended_at=None).number == 2
        assert states()["ends"] == State.SUCCEEDED

        # --- and all comes to its end ---
        for name in strays:
            remove(lab, name)
        until(lab, "the gang starts anew", {"part": State.RUNNING})
        assert Attempt.objects.get(workload__name="part").number == 2
        rest = [name for name, state in states().items() if state not in ("SUCCEEDED", "FAILED")]
        cancel(lab, *rest)
        until(lab, "all have ended", dict.fromkeys(rest, State.CANCELLED))
        turning(lab, "none is left", lambda: not running(lab))
    assert set(states()) == set(before)
    assert not Stray.objects.exists()
    assert not UsageInterval.objects.filter(charges=None).exists()
    assert broken() == []
