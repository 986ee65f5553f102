"""Lists and watches: together they show every change, however they are cut."""

from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from clusters.port import Change, ClusterError, Fault, PodPhase, PodReport, WatchEvent
from tests.contract.stage import ENDED, Stage


def until(
    events: Iterator[WatchEvent[PodReport]], name: str, change: Change, *phases: PodPhase
) -> list[WatchEvent[PodReport]]:
    """The events of one pod up to that change (and phase); the stream's own end is a failure."""
    seen = []
    for event in events:
        if event.report is None or event.report.name != name:
            continue
        seen.append(event)
        if event.change is change and (not phases or event.report.phase in phases):
            return seen
    pytest.fail(f"the watch ended before {name} was {change} {phases}: {seen}")


def watched(stage: Stage, version: str) -> AbstractContextManager[Iterator[WatchEvent[PodReport]]]:
    return stage.port.watch_pods(resource_version=version)


def test_a_watch_from_a_list_sees_a_pods_whole_life(stage: Stage) -> None:
    node = stage.add_node()
    version = stage.port.list_pods().resource_version
    with watched(stage, version) as events:
        pod = stage.start(node, command=("sleep", "1"))
        ended = until(events, pod.name, Change.UPSERT, *ENDED)
        phases = [event.report.phase for event in ended if event.report is not None]
        assert phases[0] is PodPhase.GATED
        assert phases[-2:] == [PodPhase.RUNNING, PodPhase.SUCCEEDED]
        assert {event.report.uid for event in ended if event.report is not None} == {pod.uid}
        stage.port.delete_pod(namespace=pod.namespace, name=pod.name, uid=pod.uid, grace_s=0)
        gone = until(events, pod.name, Change.DELETE)[-1]
        assert gone.report is not None
        assert gone.report.phase is PodPhase.SUCCEEDED


def test_a_watch_resumes_after_the_last_version_it_was_given(stage: Stage) -> None:
    first = stage.port.create_pod(request=stage.request())
    second = stage.port.create_pod(request=stage.request())
    version = str(int(first.resource_version) - 1)
    with watched(stage, version) as events:
        seen = until(events, first.name, Change.UPSERT)[-1]
    # The stream was cut here, with the second pod's birth on its way.
    with watched(stage, seen.resource_version) as events:
        until(events, second.name, Change.UPSERT)
        third = stage.port.create_pod(request=stage.request())
        until(events, third.name, Change.UPSERT)


def test_a_watch_ends_in_time_and_can_be_taken_up_again(stage: Stage) -> None:
    # Bookmarks are no part of this: a real server sends the first after most of a minute.
    port = stage.connect(watch_s=1)
    version = port.list_pods().resource_version
    first = stage.port.create_pod(request=stage.request())
    with port.watch_pods(resource_version=version) as events:
        seen = list(events)  # to its own end
    assert first.name in {event.report.name for event in seen if event.report is not None}
    assert all(int(event.resource_version) > int(version) for event in seen)
    second = stage.port.create_pod(request=stage.request())
    with port.watch_pods(resource_version=seen[-1].resource_version) as events:
        until(events, second.name, Change.UPSERT)
    port.close()


def test_a_watch_of_nodes_sees_a_machine_come_and_go(stage: Stage) -> None:
    version = stage.port.list_nodes().resource_version
    with stage.port.watch_nodes(resource_version=version) as events:
        name = stage.add_node()
        stage.admin("DELETE", f"/api/v1/nodes/{stage.nodes.pop()}")
        changes = set()
        for event in events:
            if event.report is not None and event.report.name == name:
                changes.add(event.change)
                if event.change is Change.DELETE:
                    break
    assert changes == {Change.UPSERT, Change.DELETE}


def test_a_list_is_whole_however_many_pages_it_takes(stage: Stage) -> None:
    born = {stage.port.create_pod(request=stage.request()).uid for _ in range(5)}
    port = stage.connect(page=2)
    listed = port.list_pods()
    assert born <= {pod.uid for pod in listed.items}
    assert len({pod.uid for pod in listed.items}) == len(listed.items)
    with port.watch_pods(resource_version=listed.resource_version) as events:
        later = stage.port.create_pod(request=stage.request())
        until(events, later.name, Change.UPSERT)
    port.close()


def test_a_watch_from_before_the_kept_history_has_expired(stage: Stage) -> None:
    version = stage.port.list_pods().resource_version
    pod = stage.port.create_pod(request=stage.request())
    stage.lose_history()
    with pytest.raises(ClusterError) as call, watched(stage, version) as events:
        next(events)
    assert call.value.fault is Fault.EXPIRED
    listed = stage.port.list_pods()
    assert pod.uid in {report.uid for report in listed.items}
    with watched(stage, listed.resource_version) as events:
        later = stage.port.create_pod(request=stage.request())
        until(events, later.name, Change.UPSERT)
