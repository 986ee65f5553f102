"""A worker that dies in the middle of a probe: another tries once more, and then it is told."""

from django.db.models.functions import Now

from clusters.models import ClusterProbe, ProbeStop
from clusters.port import Verdict
from clusters.services import probes
from controlplane.kernel import clock
from tests.crash.conftest import Scene
from tests.crash.rounds import Rounds, over_and_over

PROBING = ("W1",)


def asked(scene: Scene) -> ClusterProbe:
    return probes.ask(cluster=scene.world.cluster, actor_name="oz", at=clock.now())


def run(scene: Scene, probe: ClusterProbe, *, crash: str = "") -> ClusterProbe:
    scene.children.run("probe", crash=crash, probe_id=str(probe.id))
    probe.refresh_from_db()
    return probe


def dead_for_long(probe: ClusterProbe) -> None:
    ClusterProbe.objects.filter(id=probe.id).update(timed_from=Now() - probes.LOST_AFTER)


def test_a_probe_whose_worker_died_is_carried_out_by_another(scene: Scene) -> None:
    probe = run(scene, asked(scene), crash="W1:5")
    assert (len(probe.told), probe.ended_at, probe.tries) == (5, None, 1)
    run(scene, probe)  # the message is delivered again at once: whoever began it may still live
    assert (len(probe.told), probe.ended_at, probe.tries) == (5, None, 1)
    dead_for_long(probe)
    run(scene, probe)
    assert (probe.verdict, probe.tries) == (Verdict.WORKS, 2)
    assert len({step.name for step in probe.told}) == len(probe.told) > 20


def test_a_probe_that_kills_each_worker_is_broken_off(scene: Scene) -> None:
    probe = asked(scene)
    for _ in range(probes.MOST_TRIES):
        run(scene, probe, crash="W1:2")
        dead_for_long(probe)
    run(scene, probe)
    assert probe.ended_at is None
    probes.sweep(at=clock.now())
    probe.refresh_from_db()
    assert (probe.stopped, len(probe.told)) == (ProbeStop.BROKEN_OFF, 2)
    assert "died in the middle" in probe.why


def test_dying_over_and_over_in_the_middle_of_a_probe(scene: Scene) -> None:
    def probing(of: Rounds) -> None:
        probe = asked(scene)
        of.die("probe", "W1", passes=20, probe_id=str(probe.id))
        probe.refresh_from_db()
        told = len(probe.told)
        assert told > 0
        if of.chance.random() < 1 / 2:  # whoever began it may still live
            run(scene, probe)
            assert (len(probe.told), probe.ended_at, probe.tries) == (told, None, 1)
        dead_for_long(probe)
        run(scene, probe)
        assert (probe.verdict, probe.tries) == (Verdict.WORKS, 2)
        assert len({step.name for step in probe.told}) == len(probe.told) > 20

    over_and_over(scene, probing, points=PROBING)
