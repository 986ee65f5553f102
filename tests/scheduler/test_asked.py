"""What workloads ask for is read once a process, and of those that have not ended only."""

from typing import Any

from scheduler.models import PodSet
from scheduler.selectors import asked
from tests.scheduler.stage import Stage


def test_it_tells_pod_sets_and_flavors_in_their_order(stage: Stage) -> None:
    workload = stage.submit(gpus=2, count=3)
    [view] = asked.of({str(workload.id): 1})[str(workload.id)].pod_sets
    pod_set = PodSet.objects.get()
    assert (view.id, view.count, view.gpu_count) == (str(pod_set.id), 3, 2)
    assert view.flavors == (str(stage.flavor.id),)


def test_it_tells_which_clusters_are_accepted(stage: Stage) -> None:
    anywhere, there = stage.submit("anywhere"), stage.submit("there")
    there.clusters.add(stage.cluster)
    asks = asked.of({str(anywhere.id): 1, str(there.id): 1})
    assert asks[str(anywhere.id)].clusters == ()
    assert asks[str(there.id)].clusters == (str(stage.cluster.id),)


def test_what_is_known_is_not_read_again(stage: Stage, django_assert_num_queries: Any) -> None:
    """Any: pytest-django's context manager."""
    first = str(stage.submit("first").id)
    known = asked.of({first: 1})
    with django_assert_num_queries(0):
        assert asked.of({first: 1}) == known
    with django_assert_num_queries(3):
        asked.of({first: 2})
    second = str(stage.submit("second").id)
    with django_assert_num_queries(3):
        assert asked.of({first: 2, second: 1}).keys() == {first, second}


def test_who_has_ended_is_forgotten(stage: Stage, django_assert_num_queries: Any) -> None:
    """Any: as above."""
    ended, waits = str(stage.submit("ended").id), str(stage.submit("waits").id)
    asked.of({ended: 1, waits: 1})
    asked.keep([waits])
    with django_assert_num_queries(0):
        asked.of({waits: 1})
    with django_assert_num_queries(3):
        asked.of({ended: 1})
