"""How much pods use their devices: what a Prometheus may answer, and where it is asked."""

from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from clusters.adapters.kubernetes.client import Client
from clusters.adapters.prometheus import QUERY, Prometheus
from clusters.port import ClusterError, Fault, PodPhase
from clusters.registry import connect_use
from clusters.simulator import gauges
from clusters.use import PodUse
from tests import factories
from tests.clusters.acting import opened, request, wait
from tests.clusters.scripted import answer, scripted
from tests.networks import LOOPBACK
from tests.simulation import Simulator, simulator, store_credential

__all__ = ["simulator"]

pytestmark = pytest.mark.part_simulator

TOKEN = "canary-token-0123456789"
SERVER = "https://prometheus.example.test"
type Series = dict[str, object]


def series(pod: str, value: object, **labels: str) -> Series:
    return {"metric": {"namespace": "ns", "pod": pod, **labels}, "value": [1.5, value]}


def vector(*result: object, kind: str = "vector") -> bytes:
    return orjson.dumps(
        {"status": "success", "data": {"resultType": kind, "result": list(result)}}
    )


def use(body: bytes, status: str = "200 OK") -> tuple[PodUse, ...]:
    with scripted(lambda _: answer(status, body)) as server:
        port = Prometheus(Client(server=server.url, identity=TOKEN, allowed=LOOPBACK))
        try:
            found = port.use()
        finally:
            port.close()
    asked = server.requests[0].split()[1]
    assert parse_qs(urlsplit(asked).query) == {"query": [QUERY]}
    return found


def test_each_pod_has_the_numbers_of_its_devices() -> None:
    found = use(vector(series("a", "0"), series("b", "12.5"), series("a", "99", UUID="GPU-1")))
    assert found == (PodUse("ns", "a", (0, 99)), PodUse("ns", "b", (12.5,)))


def test_what_is_of_no_pod_or_no_number_was_not_measured() -> None:
    foreign = {"metric": {"UUID": "GPU-1"}, "value": [1, "0"]}
    found = use(vector(foreign, series("a", "NaN"), series("b", "+Inf"), series("c", "1")))
    assert found == (PodUse("ns", "c", (1,)),)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"[]", "no JSON object"),
        (b"<html>", "no JSON object"),
        (b'{"status": "error", "error": "bad query"}', "has no result"),
        (b'{"status": "success"}', "has no result"),
        (vector(kind="matrix"), "is a matrix; right would be a vector"),
        (b'{"status": "success", "data": {"resultType": "vector"}}', "right would be a vector"),
        (vector("x"), "a series without labels or a value"),
        (vector({"metric": {}}), "a series without labels or a value"),
        (vector({"metric": {}, "value": [1]}), "a series without labels or a value"),
        (vector(series("a", "much")), "a series without labels or a value"),
        (vector(series("a", None)), "a series without labels or a value"),
    ],
)
def test_an_answer_that_is_none_measures_nothing(body: bytes, told: str) -> None:
    with pytest.raises(ClusterError, match=told) as raised:
        use(body)
    assert raised.value.fault is Fault.MALFORMED


def test_a_refusal_is_an_error_of_the_cluster() -> None:
    with pytest.raises(ClusterError) as raised:
        use(b'{"status": "error", "error": "parse error"}', "400 Bad Request")
    assert raised.value.fault is Fault.INVALID


def test_nothing_measures_a_cluster_whose_credential_says_of_nothing(db: None) -> None:
    cluster = factories.cluster("north")
    store_credential(cluster, server=SERVER, token=TOKEN)
    assert connect_use("north") is None
    measured = {"server": SERVER, "token": TOKEN, "query": "gpu_use"}
    store_credential(cluster, server=SERVER, token=TOKEN, metrics=measured)
    port = connect_use("north")
    assert port is not None
    port.close()


def test_the_simulator_tells_of_each_device_of_a_running_pod(
    simulator: Simulator, db: None
) -> None:
    simulator.store_credential(factories.cluster("north"), measured=True)
    port = simulator.connect()
    for name, command in (("sleeps", ("sleep", "600")), ("works", ("train",))):
        asked = request(name=name, command=command, resources=(("nvidia.com/gpu", 2),))
        wait(port, opened(port, asked, node="h100-0"), PodPhase.RUNNING)
    measured = connect_use("north")
    assert measured is not None
    found = {use.pod: use.percents for use in measured.use()}
    assert found == {"sleeps": (0, 0), "works": (90, 90)}
    measured.close()
    port.close()


def test_the_simulators_text_is_prometheus_own_format(simulator: Simulator) -> None:
    port = simulator.connect()
    asked = request(name="works", command=("train",), resources=(("nvidia.com/gpu", 1),))
    wait(port, opened(port, asked, node="h100-0"), PodPhase.RUNNING)
    text = simulator.text("/metrics")
    [family] = text_string_to_metric_families(text)
    [sample] = family.samples
    assert (sample.name, sample.value) == (gauges.GAUGE, 90)
    assert sample.labels["pod"] == "works"
    port.close()
