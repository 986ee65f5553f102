"""What workloads ask for is read once a process, and of those that have not ended only."""

from typing import Any

from scheduler.core.lifecycle import State
from scheduler.models import PodSet, Workload
from scheduler.selectors import asked
from tests.factories import AT
from tests.scheduler.stage import Stage


def test_it_tells_pod_sets_and_flavors_in_their_order(stage: Stage) -> None:
    workload = stage.submit(gpus=2, count=3)
    [view] = asked.live()[str(workload.id)].pod_sets
    pod_set = PodSet.objects.get()
    assert (view.id, view.count, view.gpu_count) == (str(pod_set.id), 3, 2)
    assert view.flavors == (str(stage.flavor.id),)


def test_it_tells_which_clusters_are_accepted(stage: Stage) -> None:
    anywhere, there = stage.submit("anywhere"), stage.submit("there")
    there.clusters.add(stage.cluster)
    asks = asked.live()
    assert asks[str(anywhere.id)].clusters == ()
    assert asks[str(there.id)].clusters == (str(stage.cluster.id),)


def test_what_is_known_is_not_read_again(stage: Stage, django_assert_num_queries: Any) -> None:
    """Any: pytest-django's context manager."""
    first = stage.submit("first")
    known = asked.live()
    with django_assert_num_queries(1):
        assert asked.live() == known
    second = stage.submit("second")
    with django_assert_num_queries(3):
        assert asked.live().keys() == {str(first.id), str(second.id)}


def test_who_has_ended_is_forgotten(stage: Stage) -> None:
    ended, waits = stage.submit("ended"), stage.submit("waits")
    asked.live()
    Workload.objects.filter(id=ended.id).update(state=State.CANCELLED, version=2, ended_at=AT)
    assert asked.live().keys() == {str(waits.id)}
