"""The probe where the real API server has more to say than the simulator."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.port import ProbeStep
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.manifests import apply, remove
from tests.kube.waiting import eventually
from tests.networks import LOOPBACK

pytestmark = pytest.mark.xdist_group("kube")


def probe(kube: ControlPlane, *, token: str) -> dict[str, ProbeStep]:
    client = Client(server=kube.server, identity=token, ca_pem=kube.ca_pem, allowed=LOOPBACK)
    port = KubernetesCluster(client, names=NAMES)
    steps = port.probe()
    port.close()
    return {step.name: step for step in steps}


@contextmanager
def refusing(kube: ControlPlane, resource: str, *, to: str) -> Iterator[None]:
    """A policy of the cluster's own, by which nobody makes such objects."""
    admission = "admissionregistration.k8s.io/v1"
    rule: Json = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": [resource],
    }
    documents: list[Json] = [
        {
            "apiVersion": admission,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "house-rule"},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "matchConditions": [
                    {"name": "berth", "expression": f"object.metadata.name == '{to}'"}
                ],
                "validations": [{"expression": "false", "message": "name a cost centre"}],
            },
        },
        {
            "apiVersion": admission,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "house-rule"},
            "spec": {"policyName": "house-rule", "validationActions": ["Deny"]},
        },
    ]
    apply(kube.admin, documents)
    try:
        yield
    finally:
        remove(kube.admin, documents)


@pytest.mark.parametrize("what", ["namespace", "pod"])
def test_a_policy_that_refuses_what_berth_makes_is_quoted(
    control_plane: ControlPlane, what: str
) -> None:
    def refused() -> ProbeStep | None:
        step = probe(control_plane, token=control_plane.berth_token)[f"make a {what}"]
        return None if step.ok else step

    with refusing(control_plane, f"{what}s", to="berth-probe"):
        assert "name a cost centre" in eventually("it is refused", refused).said


def test_a_token_that_may_do_more_than_berth_ever_does_is_told(
    control_plane: ControlPlane,
) -> None:
    steps = probe(control_plane, token=control_plane.admin_token)
    assert (steps["excess"].ok, steps["excess"].warning) == (True, True)
    assert steps["excess"].said.startswith("may do everything, read secrets")
    assert not probe(control_plane, token=control_plane.berth_token)["excess"].warning
