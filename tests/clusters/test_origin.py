"""Pool, zone and kind of capacity, by the labels of who runs the cluster."""

import pytest

from clusters.origin import Origin, origin

ZONE = {"topology.kubernetes.io/zone": "z1"}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, ("", "", "")),
        (ZONE, ("", "z1", "")),
        (
            {"eks.amazonaws.com/nodegroup": "gpus", "eks.amazonaws.com/capacityType": "SPOT"}
            | ZONE,
            ("gpus", "z1", "spot"),
        ),
        ({"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"}, ("", "", "reserved")),
        ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, ("", "", "on-demand")),
        ({"kubernetes.azure.com/agentpool": "gpu"}, ("gpu", "", "on-demand")),
        (
            {"agentpool": "gpu", "kubernetes.azure.com/scalesetpriority": "spot"},
            ("gpu", "", "spot"),
        ),
        ({"cloud.google.com/gke-nodepool": "a3"}, ("a3", "", "on-demand")),
        (
            {"cloud.google.com/gke-nodepool": "a3", "cloud.google.com/gke-spot": "true"},
            ("a3", "", "spot"),
        ),
        (
            {
                "eks.amazonaws.com/nodegroup": "base",
                "karpenter.sh/nodepool": "flex",
                "karpenter.sh/capacity-type": "on-demand",
            },
            ("flex", "", "on-demand"),
        ),
        ({"karpenter.sh/capacity-type": "free", "karpenter.sh/nodepool": ""}, ("", "", "")),
        (
            {"cloud.google.com/gke-provisioning": "standard", "cloud.google.com/gke-spot": "true"},
            ("", "", "spot"),
        ),
    ],
)
def test_it_is_as_the_labels_tell(labels: dict[str, str], expected: tuple[str, str, str]) -> None:
    assert origin(labels) == Origin(*expected)  # type: ignore[arg-type]  # a value of CapacityType
