"""How many queries each endpoint costs: written down, and the same for more rows. (What pages cost
is in tests/web; that more rows cost no more is checked for them here too.)

After a change that is meant: BERTH_WRITE_QUERY_COUNTS=1 pytest tests/api/test_query_counts.py -n 0
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.models import Flavor
from scheduler.core.lifecycle import State
from tests import factories
from tests.api.test_access_matrix import API_ROOT, ROWS, ask, path_of
from tests.api.world import World
from tests.conftest import Cast

FILE = Path(__file__).parents[1] / "query_counts.json"
WRITE = "BERTH_WRITE_QUERY_COUNTS"
pytestmark = pytest.mark.usefixtures("seen_once")
_NOT_COUNTED = ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")
_WHO = {
    "POST /api/v1/tenants/<uuid:id>/parent": "fleet owner",
    "POST /api/v1/quota-requests/<uuid:id>/grant": "fleet approver",
    "POST /api/v1/quota-requests/<uuid:id>/deny": "fleet approver",
    "POST /api/v1/quota-requests/<uuid:id>/end": "fleet approver",
    "GET /api/v1/quota-requests/<uuid:id>/impact": "fleet approver",
    "POST /api/v1/delegations": "approver",
    "POST /api/v1/delegations/<uuid:id>/withdraw": "fleet approver",
    "POST /api/v1/quota-requests/<uuid:id>/amend": "member",
    "POST /api/v1/quota-requests/<uuid:id>/withdraw": "member",
    "POST /api/v1/quotas": "fleet operator",
    "POST /api/v1/tenant-quotas": "fleet operator",
    "POST /api/v1/quotas/dry-run": "fleet operator",
    "POST /api/v1/tenant-quotas/dry-run": "fleet operator",
    "POST /api/v1/budgets": "fleet operator",
    "DELETE /api/v1/budgets/<uuid:id>": "fleet operator",
    "POST /api/v1/projects/<uuid:id>/idle-limit": "fleet operator",
    "POST /api/v1/tenants/<uuid:id>/idle-limit": "fleet operator",
    "POST /api/v1/projects/<uuid:id>/min-run-time": "fleet operator",
    "POST /api/v1/tenants/<uuid:id>/min-run-time": "fleet operator",
    "POST /api/v1/projects/<uuid:id>/weight": "fleet operator",
    "POST /api/v1/tenants/<uuid:id>/weight": "fleet operator",
    "POST /api/v1/projects/<uuid:id>/gates": "fleet operator",
    "DELETE /api/v1/projects/<uuid:id>/gates/<slug:name>": "fleet operator",
    "POST /api/v1/rates": "fleet operator",
    "POST /api/v1/reservations": "fleet operator",
    "DELETE /api/v1/reservations/<uuid:id>": "fleet operator",
    "POST /api/v1/clusters": "fleet operator",
    "PUT /api/v1/clusters/<uuid:id>/credential": "fleet operator",
    "POST /api/v1/flavors/<uuid:id>/placing": "fleet operator",
    "POST /api/v1/clusters/<uuid:id>/queues": "fleet operator",
    "POST /api/v1/clusters/<uuid:id>/asking": "fleet operator",
    "PUT /api/v1/node-pools/<uuid:id>/node": "fleet operator",
    "POST /api/v1/clusters/<uuid:id>/node-pools": "fleet operator",
    "DELETE /api/v1/node-pools/<uuid:id>": "fleet operator",
    "POST /api/v1/clusters/<uuid:id>/drift": "fleet operator",
    "POST /api/v1/flavors": "fleet operator",
    "GET /api/v1/cluster-manifest": "fleet operator",
    "GET /api/v1/clusters/<uuid:id>/probes": "fleet operator",
    "POST /api/v1/clusters/<uuid:id>/probes": "fleet operator",
    "GET /api/v1/clusters/<uuid:id>/probes/<uuid:probe_id>": "fleet operator",
    "GET /api/v1/clusters/<uuid:id>/defragmentation": "fleet operator",
    "POST /api/v1/clusters/<uuid:id>/defragmentation": "fleet operator",
    "DELETE /api/v1/clusters/<uuid:id>/defragmentation": "fleet operator",
    "GET /api/v1/clusters/<uuid:id>/recuts": "fleet operator",
    "POST /api/v1/clusters/<uuid:id>/recuts": "fleet operator",
    "POST /api/v1/clusters/<uuid:id>/recuts/preview": "fleet operator",
    "GET /api/v1/clusters/<uuid:id>/recuts/proposals": "fleet operator",
    "DELETE /api/v1/clusters/<uuid:id>/recuts/<uuid:recut>": "fleet operator",
    "GET /metrics": "fleet operator",
}
"""Who asks where an owner may not."""
COUNTED = sorted(
    (method, route)
    for method, route in ROWS
    if route.startswith(API_ROOT) or route in {"healthz", "readyz", "metrics"}
)


def name_of(method: str, route: str) -> str:
    return f"{method} /{route}"


def count(method: str, route: str, world: World) -> int:
    row = ROWS[method, route]
    client = world.clients[_WHO.get(name_of(method, route), "owner")]
    url = path_of(route, row, world)
    ask(client, method, url, row, world)  # what is read once a process is not counted
    ContentType.objects.clear_cache()
    with CaptureQueriesContext(connection) as queries:
        ask(client, method, url, row, world)
    return sum(not query["sql"].startswith(_NOT_COUNTED) for query in queries.captured_queries)


@pytest.fixture(scope="module")
def written() -> Iterator[dict[str, int]]:
    """The counts on file; with BERTH_WRITE_QUERY_COUNTS=1 those of this run replace them."""
    counts: dict[str, int] = json.loads(FILE.read_text()) if FILE.exists() else {}
    yield counts
    if os.environ.get(WRITE) == "1":
        FILE.write_text(json.dumps(dict(sorted(counts.items())), indent=2) + "\n")


@pytest.mark.parametrize(("method", "route"), COUNTED)
def test_it_costs_as_many_queries_as_is_written(
    method: str, route: str, world: World, written: dict[str, int]
) -> None:
    found = count(method, route, world)
    name = name_of(method, route)
    if os.environ.get(WRITE) == "1":
        written[name] = found
    assert found == written.get(name), f"{name}: {found} queries, {written.get(name)} on file"


def test_the_file_has_no_old_rows(written: dict[str, int]) -> None:
    assert set(written) == {name_of(method, route) for method, route in COUNTED}


def test_more_rows_cost_no_more_queries(world: World) -> None:
    """Of each route that is read: how many more there were, from how many."""
    routes = sorted(route for method, route in ROWS if method == "GET")
    small = factories.mig_flavor()
    factories.rate(small)
    add_rows(world.cast, small, "east", 1)
    few = {route: count("GET", route, world) for route in routes}
    add_rows(world.cast, small, "south", 4)
    more = {route: count("GET", route, world) - few[route] for route in routes}
    assert {route: (grown, few[route]) for route, grown in more.items() if grown > 0} == {}


def add_rows(cast: Cast, small: Flavor, name: str, many: int) -> None:
    """`many` more of everything that a page or a list may show."""
    cluster = factories.cluster(name)
    flavor = Flavor.objects.exclude(id=small.id).get()
    for number in range(many):
        node = factories.node(cluster, f"s{number}", gpus=2)
        factories.device_slice(node.devices.get(ordinal=0), "1g.10gb", 0, 1)
        pending = factories.workload(cast.detection, cast.ben, [flavor, small])
        factories.estimate(pending)
        running = factories.workload(cast.detection, cast.ada, [flavor], state=State.RUNNING)
        placed = factories.place(running, node, flavor)
        factories.span(placed, node.devices.get(ordinal=1))
        factories.charge(factories.usage(placed), flavor.rates.get())
        factories.quota_request(cast.detection, flavor, cast.ben)
        factories.reservation(cast.detection, flavor, cast.oz)
        factories.token(cast.ada)
        factories.array(cast.detection, cast.ben, [flavor])
