"""Node pools that an operator declared, as rows."""

from typing import Any

from clusters.models import Cluster, NodePool
from tests import factories


def declared_pool(of: Cluster, name: str = "a3", **fields: Any) -> NodePool:
    """Of which four nodes can come; Any: model fields."""
    values = {
        "selector": {"cloud.google.com/gke-nodepool": name},
        "request_class": "queued-provisioning.gke.io",
    }
    return factories.node_pool(of, name, **(values | fields))
