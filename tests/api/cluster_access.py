"""The rows of clusters, of what is in them, and of flavors."""

from tests.api.row import Row

_EVERYBODY = "200 200 200 200 200 200 200 200 200 401 401 200 200 200"
_OPERATE = "403 403 403 403 403 403 200 403 403 401 401 403 403 403"
_OPERATE_MAKES = _OPERATE.replace("200", "201")
OF_FLEET = "403 403 403 403 403 200 200 200 403 401 401 403 403 403"
"""What belongs to the fleet: a tenant's operator may not either."""
_NODE = {"model": "H100-80GB-HBM3", "gpus": 8, "cpu_milli": 96_000, "memory_mib": 1_000_000}
_RECUT = {"node": "n1", "devices": [{"count": 1, "slices": {"1g.10gb": 7}}]}

CLUSTERS = {
    ("GET", "clusters"): Row(_EVERYBODY),
    ("POST", "clusters"): Row(
        _OPERATE_MAKES, body=lambda world: {"name": "new-one", "region": "eu"}
    ),
    ("GET", "clusters/<uuid:id>"): Row(_EVERYBODY, {"id": "cluster"}),
    ("PUT", "clusters/<uuid:id>/credential"): Row(
        _OPERATE,
        {"id": "cluster"},
        body=lambda world: {"server": "https://north.example.test", "token": "t" * 16},
    ),
    ("GET", "cluster-manifest"): Row(OF_FLEET),
    ("GET", "clusters/<uuid:id>/exposure"): Row(OF_FLEET, {"id": "cluster"}),
    ("GET", "clusters/<uuid:id>/probes"): Row(OF_FLEET, {"id": "cluster"}),
    ("POST", "clusters/<uuid:id>/probes"): Row(
        _OPERATE.replace("200", "202"), {"id": "other cluster"}
    ),
    ("GET", "clusters/<uuid:id>/probes/<uuid:probe_id>"): Row(
        OF_FLEET, {"id": "cluster", "probe_id": "probe"}
    ),
    ("GET", "clusters/<uuid:id>/queues"): Row(_EVERYBODY, {"id": "cluster"}),
    ("POST", "clusters/<uuid:id>/queues"): Row(
        _OPERATE, {"id": "cluster"}, body=lambda world: {"state": "held", "note": "Why."}
    ),
    ("GET", "clusters/<uuid:id>/node-pools"): Row(_EVERYBODY, {"id": "cluster"}),
    ("POST", "clusters/<uuid:id>/node-pools"): Row(
        _OPERATE,
        {"id": "cluster"},
        body=lambda world: {
            "name": "new-pool",
            "selector": {"cloud.google.com/gke-nodepool": "new-pool"},
            "request_class": "queued-provisioning.gke.io",
            "nodes": 4,
            "node": _NODE,
        },
    ),
    ("DELETE", "node-pools/<uuid:id>"): Row(
        _OPERATE.replace("200", "204"), {"id": "declared pool"}
    ),
    ("POST", "clusters/<uuid:id>/asking"): Row(
        _OPERATE, {"id": "cluster"}, body=lambda world: {"ask": True}
    ),
    ("PUT", "node-pools/<uuid:id>/node"): Row(
        _OPERATE,
        {"id": "node pool"},
        body=lambda world: _NODE,
    ),
    ("GET", "clusters/<uuid:id>/projects"): Row(_EVERYBODY, {"id": "cluster"}),
    ("POST", "clusters/<uuid:id>/drift"): Row(
        _OPERATE, {"id": "cluster"}, body=lambda world: {"repair": False}
    ),
    ("GET", "clusters/<uuid:id>/defragmentation"): Row(_OPERATE, {"id": "cluster"}),
    ("POST", "clusters/<uuid:id>/defragmentation"): Row(
        _OPERATE_MAKES,
        {"id": "cluster"},
        body=lambda world: {
            "budget_s": 60,
            "starts_at": "2100-01-01T00:00:00Z",
            "ends_at": "2100-01-02T00:00:00Z",
        },
    ),
    ("DELETE", "clusters/<uuid:id>/defragmentation"): Row(
        _OPERATE.replace("200", "204"), {"id": "other cluster"}
    ),
    ("GET", "clusters/<uuid:id>/recuts"): Row(_OPERATE, {"id": "other cluster"}),
    ("POST", "clusters/<uuid:id>/recuts"): Row(
        _OPERATE_MAKES, {"id": "cluster"}, body=lambda world: {**_RECUT, "mode": "wait"}
    ),
    ("POST", "clusters/<uuid:id>/recuts/preview"): Row(
        _OPERATE, {"id": "cluster"}, body=lambda world: _RECUT
    ),
    ("GET", "clusters/<uuid:id>/recuts/proposals"): Row(_OPERATE, {"id": "cluster"}),
    ("DELETE", "clusters/<uuid:id>/recuts/<uuid:recut>"): Row(
        _OPERATE.replace("200", "204"), {"id": "other cluster", "recut": "recut"}
    ),
    ("GET", "pools/<uuid:id>/fit"): Row(_EVERYBODY, {"id": "cluster"}),
    ("GET", "layouts/advice"): Row(OF_FLEET),
    ("GET", "nodes"): Row(_EVERYBODY),
    ("GET", "devices"): Row(_EVERYBODY),
    ("GET", "flavors"): Row(_EVERYBODY),
    ("POST", "flavors"): Row(
        _OPERATE_MAKES, body=lambda world: {"name": "a100", "kind": "whole", "model": "A100"}
    ),
    ("POST", "flavors/<uuid:id>/placing"): Row(
        _OPERATE, {"id": "flavor"}, body=lambda world: {"placing": "spread"}
    ),
}
