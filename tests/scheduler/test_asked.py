"""What workloads ask for is read once a process, and of those that have not ended only."""

from typing import Any

from scheduler.models import PodSet
from scheduler.selectors import asked
from tests.scheduler.stage import Stage


def test_it_tells_pod_sets_and_flavors_in_their_order(stage: Stage) -> None:
    workload = stage.submit(gpus=2, count=3)
    [view] = asked.of([str(workload.id)])[str(workload.id)].pod_sets
    pod_set = PodSet.objects.get()
    assert (view.id, view.count, view.gpu_count) == (str(pod_set.id), 3, 2)
    assert view.flavors == (str(stage.flavor.id),)


def test_it_tells_which_clusters_are_accepted(stage: Stage) -> None:
    anywhere, there = stage.submit("anywhere"), stage.submit("there")
    there.clusters.add(stage.cluster)
    asks = asked.of([str(anywhere.id), str(there.id)])
    assert asks[str(anywhere.id)].clusters == ()
    assert asks[str(there.id)].clusters == (str(stage.cluster.id),)


def test_what_is_known_is_not_read_again(stage: Stage, django_assert_num_queries: Any) -> None:
    """Any: pytest-django's context manager."""
    first = str(stage.submit("first").id)
    known = asked.of([first])
    with django_assert_num_queries(0):
        assert asked.of([first]) == known
    second = str(stage.submit("second").id)
    with django_assert_num_queries(3):
        assert asked.of([first, second]).keys() == {first, second}


def test_who_is_not_asked_for_is_forgotten(stage: Stage, django_assert_num_queries: Any) -> None:
    """Any: as above."""
    ended, waits = str(stage.submit("ended").id), str(stage.submit("waits").id)
    asked.of([ended, waits])
    assert asked.of([waits]).keys() == {waits}
    with django_assert_num_queries(3):
        asked.of([ended])
