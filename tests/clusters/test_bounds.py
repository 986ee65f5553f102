"""What of a cluster is more than is read: one list, one watch, one object."""

import tracemalloc
from collections.abc import Iterator
from itertools import count

import orjson
import pytest

from clusters.adapters.kubernetes import lists
from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.checks import MOST_VALUES, Malformed, document, moment
from clusters.adapters.kubernetes.client import Client
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.nodes import node
from clusters.adapters.kubernetes.translate import pod, readable
from clusters.adapters.kubernetes.watch import _lines
from clusters.port import ClusterError, Fault
from tests.clusters.scripted import Act, Scripted, answer, scripted, stream
from tests.networks import LOOPBACK

pytestmark = pytest.mark.part_simulator

NAMES = Names(prefix="berth.dev", installation="lab")


def port(url: str, **limits: float) -> KubernetesCluster:
    client = Client(server=url, identity="t" * 20, allowed=LOOPBACK, read_timeout_s=5)
    return KubernetesCluster(client, names=NAMES, page=2, **limits)  # type: ignore[arg-type]


def page(items: list[object], *, rest: str = "", version: object = "1") -> Act:
    metadata = {"resourceVersion": version, "continue": rest}
    return answer("200 OK", orjson.dumps({"metadata": metadata, "items": items}))


def listed(acts: Iterator[Act]) -> str:
    """What is told of a list whose pages these are."""
    with scripted(lambda _: lambda line: next(acts)(line)) as server:
        with pytest.raises(ClusterError) as raised:
            port(server.url).list_pods()
        assert raised.value.fault is Fault.MALFORMED
        return str(raised.value)


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (page([{}], rest="x" * 20_000), "what comes after a page"),
        (page([{}], version="9" * 65), "has no version"),
        (page([{}], version=7), "has no version"),
        (answer("200 OK", b'{"metadata": {}, "items": {}}'), "is no list"),
    ],
)
def test_a_page_that_makes_no_sense_ends_the_list(first: Act, told: str) -> None:
    assert told in listed(iter([first]))


def test_a_page_that_leads_to_itself_ends_the_list() -> None:
    assert "the same one again" in listed(iter([page([{}], rest="a"), page([{}], rest="a")]))


def test_a_list_has_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "LONGEST_S", 0.0)
    with scripted(lambda _: page([{}], rest="a")) as server:
        with pytest.raises(ClusterError, match="has not ended after 0 s") as raised:
            port(server.url).list_pods()
        assert raised.value.fault is Fault.SERVER


def test_a_server_may_leave_pages_empty_and_give_more_than_was_asked_for() -> None:
    few = [page([], rest=str(nth)) for nth in range(lists.MOST_EMPTY)]
    acts = iter([*few, page([{}] * 3, rest="on"), *few, page([])])
    with scripted(lambda _: lambda line: next(acts)(line)) as server:
        assert len(port(server.url).list_pods().left_out) == 3


def test_pages_that_stay_empty_end_the_list() -> None:
    assert "11 empty pages in a row" in listed(page([], rest=str(nth)) for nth in count())


def test_a_list_has_a_length() -> None:
    with scripted(lambda _: page([{}, {}], rest="a")) as server:
        client = Client(server=server.url, identity="t" * 20, allowed=LOOPBACK)
        with pytest.raises(ClusterError, match="more than 1 objects"):
            lists.listing(client, "/x", dict, page=2, most=1)


def test_a_failure_under_200_is_one() -> None:
    status = {"kind": "Status", "status": "Failure", "code": 403, "message": "no"}
    with scripted(lambda _: answer("200 OK", orjson.dumps(status))) as server:
        with pytest.raises(ClusterError, match="answered 403: no") as raised:
            port(server.url).list_pods()
        assert raised.value.fault is Fault.FORBIDDEN


def test_values_are_counted_before_they_are_made() -> None:
    text = b'{"items":[' + b"{}," * MOST_VALUES + b"{}]}"
    tracemalloc.start()
    try:
        with pytest.raises(Malformed, match=f"more than {MOST_VALUES:,} values"):
            document(text)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_watch_that_never_is_silent_ends() -> None:
    def talks(server: Scripted) -> Act:
        def act(line: object) -> None:
            stream()(line)  # type: ignore[arg-type]  # a socket
            while not server.ended.wait(0.01):
                line.sendall(b"1\r\n\n\r\n")  # type: ignore[attr-defined]

        return act

    with scripted(talks) as server:
        watching = port(server.url, watch_read_timeout_s=0.3).watch_pods(resource_version="5")
        with watching as events:
            assert list(events) == []


def test_a_line_in_many_pieces_is_one_line() -> None:
    assert list(_lines(iter([b"a", b"", b"b\nc", b"d\n\ne"]))) == [b"ab", b"cd", b""]


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_a_time_beyond_the_calendar_is_none(at: str) -> None:
    with pytest.raises(Malformed):
        moment({"at": at}, "at")


def body(**resources: str) -> dict[str, object]:
    container = {"name": "main", "resources": {"requests": resources}}
    metadata = {"namespace": "n", "name": "p", "uid": "u" * 64, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"containers": [container]}, "status": {}}


def test_a_uid_fits_its_column() -> None:
    assert pod(body(), names=NAMES).uid == "u" * 64
    with pytest.raises(Malformed, match="uid is no name"):
        pod({**body(), "metadata": {**body()["metadata"], "uid": "u" * 65}}, names=NAMES)  # type: ignore[dict-item]


def test_a_pod_asks_for_so_many_kinds_of_devices() -> None:
    few = {f"nvidia.com/{nth}": "1" for nth in range(64)}
    assert len(pod(body(**few), names=NAMES).resources) == 64
    with pytest.raises(Malformed, match="more than 64 resources"):
        pod(body(**few, **{"nvidia.com/one-more": "1"}), names=NAMES)


def machine(labels: dict[str, str], **held: str) -> dict[str, object]:
    amounts = {"cpu": "1", "memory": "1Gi", **held}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"metadata": {"name": "n", "uid": "u", "labels": labels}, "spec": {}, "status": status}


def test_a_model_fits_its_column() -> None:
    labels = {"nvidia.com/gpu.product": "M" * 250}
    [device] = node(machine(labels, **{"nvidia.com/gpu": "1"}), names=NAMES).devices
    assert device.model == "M" * 80


@pytest.mark.parametrize(
    ("labels", "held", "told"),
    [
        ({"gpu.intel.com/device.count": "1"}, {"gpu.intel.com/i915": "1001"}, "1000 shares"),
        ({}, {f"nvidia.com/mig-1g.{nth}gb": "2" for nth in range(1, 1100)}, "2048 MIG slices"),
    ],
)
def test_a_node_has_so_many_parts(labels: dict[str, str], held: dict[str, str], told: str) -> None:
    with pytest.raises(Malformed, match=f"more than {told}"):
        node(machine(labels, **held), names=NAMES)


def test_of_a_name_that_is_a_tree_nothing_is_said() -> None:
    deep: object = "x"
    for _ in range(5000):
        deep = [deep]
    _, [told] = readable([{"metadata": {"name": deep}}], lambda of: pod(of, names=NAMES))
    assert told.startswith("one without a name: ")


def test_what_all_containers_of_a_pod_ask_for_counts_together() -> None:
    """In time, too: each would be small."""
    containers = [
        {"resources": {"limits": {f"nvidia.com/d{nth}-{kind}": "1" for kind in range(60)}}}
        for nth in range(500)
    ]
    body = {
        "metadata": {"namespace": "p", "name": "n", "uid": "u", "resourceVersion": "1"},
        "spec": {"containers": containers},
    }
    with pytest.raises(Malformed, match="more than 64 resources"):
        pod(body, names=NAMES)


def test_a_node_with_many_features_keeps_what_says_which_it_is() -> None:
    features = {f"feature.node.kubernetes.io/cpu-cpuid.F{nth}": "true" for nth in range(400)}
    labels = {"kubernetes.io/hostname": "host-1", "nvidia.com/gpu.product": "NVIDIA-L4",
              "topology.kubernetes.io/zone": "a"}  # fmt: skip
    body = {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "1", "labels": features | labels},
        "status": {"allocatable": {"nvidia.com/gpu": "1"}},
    }
    report = node(body, names=NAMES)
    assert (report.hostname, [device.model for device in report.devices]) == ("host-1", ["L4"])
    assert labels.items() <= report.labels.items()
