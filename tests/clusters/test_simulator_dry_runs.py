"""Dry runs on the simulated cluster: answered and refused as if done, and nothing is done."""

import pytest

from clusters.adapters.kubernetes import manifests
from clusters.adapters.kubernetes.names import Names
from clusters.confinement import Confinement
from tests.clusters.acting import request
from tests.simulation import Simulator, simulator

__all__ = ["simulator"]

pytestmark = pytest.mark.part_simulator

NAMES = Names(prefix="berth.dev", installation="berth")
PODS = "/api/v1/namespaces/default/pods"


def test_a_dry_run_answers_with_what_would_be(simulator: Simulator) -> None:
    before = simulator.stats()["revision"]
    asked = request()
    pod = simulator.call("POST", f"{PODS}?dryRun=All", manifests.pod(asked, names=NAMES))
    assert (pod["metadata"]["name"], pod["status"]["phase"]) == (asked.name, "Pending")
    space = simulator.call(
        "POST", "/api/v1/namespaces?dryRun=All", manifests.namespace("fresh", names=NAMES)
    )
    assert space["metadata"]["labels"]["berth.dev/installation"] == "berth"
    assert simulator.stats()["revision"] == before


def test_what_is_there_already_stays_as_it_is(simulator: Simulator) -> None:
    port = simulator.connect()
    port.confine(wanted=Confinement("fresh"))
    port.close()
    before = simulator.call("GET", "/api/v1/namespaces")["items"]
    body = manifests.namespace("fresh", names=Names(prefix="berth.dev", installation="two"))
    with pytest.raises(AssertionError, match="already exists"):
        simulator.call("POST", "/api/v1/namespaces?dryRun=All", body)
    assert simulator.call("GET", "/api/v1/namespaces")["items"] == before


def test_a_dry_run_is_refused_what_would_be_refused(simulator: Simulator) -> None:
    pod = manifests.pod(request(name="Not_A_Name"), names=NAMES)
    with pytest.raises(AssertionError, match="is invalid"):
        simulator.call("POST", f"{PODS}?dryRun=All", pod)


@pytest.mark.parametrize(
    ("method", "path", "why"),
    [
        ("DELETE", "/api/v1/nodes/h100-0?dryRun=All", "dry runs are simulated for"),
        ("POST", "/api/v1/nodes?dryRun=All", "dry runs are simulated for"),
        ("POST", "/api/v1/namespaces?dryRun=Some", "dryRun has to be All"),
    ],
)
def test_a_dry_run_that_is_not_simulated_is_not_done(
    simulator: Simulator, method: str, path: str, why: str
) -> None:
    before = simulator.stats()["revision"]
    with pytest.raises(AssertionError, match=why):
        simulator.call(method, path, {"metadata": {"name": "h100-0"}})
    assert simulator.stats()["revision"] == before
