"""What fleet operators add: clusters, flavors, prices; and taking a cluster out of use."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from clusters.models import Cluster, Flavor
from clusters.services import clusters
from controlplane.audit.models import AuditEvent
from tenants.models import Rate, Scope, User
from tests import factories
from tests.conftest import Cast, Unchanged

type Api = Callable[[User | None], APIClient]
type Json = Any  # JSON values

CLUSTERS, FLAVORS, RATES = "/api/v1/clusters", "/api/v1/flavors", "/api/v1/rates"
H100 = "NVIDIA-H100-80GB-HBM3"
PRICE = {"flavor": "h100-80gb", "price_per_hour": "3.10", "currency": "EUR"}


def faults(answer: Json, status: int = 400) -> list[tuple[str, str]]:
    """(pointer, code) of each fault of a problem document."""
    assert answer.status_code == status, answer.content
    return [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]


def audited() -> list[tuple[str, str, Json, Json]]:
    rows = AuditEvent.objects.order_by("id")
    return [(row.action, row.actor_name, row.before, row.after) for row in rows]


def test_a_cluster_is_registered_and_waits_to_be_heard(api: Api, cast: Cast) -> None:
    answer = api(cast.oz).post(CLUSTERS, {"name": "gpu-1", "region": "eu"}, format="json")
    assert answer.status_code == 201
    made = answer.json()
    assert (made["name"], made["region"], made["state"]) == ("gpu-1", "eu", "new")
    assert made == api(cast.vik).get(f"{CLUSTERS}/{made['id']}").json()
    after = {"name": "gpu-1", "region": "eu", "server": ""}
    assert audited() == [("cluster.register", "oz", {}, after)]


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({}, "/name", "required"),
        ({"name": "../etc"}, "/name", "invalid"),
        ({"name": "North"}, "/name", "invalid"),
        ({"name": "a_b"}, "/name", "invalid"),
        ({"name": "-a"}, "/name", "invalid"),
        ({"name": "a" * 41}, "/name", "invalid"),
        ({"name": 5}, "/name", "wrong-type"),
        ({"name": "a\u202eb"}, "/name", "bad-character"),
        ({"name": "a", "region": "x" * 61}, "/region", "max-length"),
        ({"name": "a", "region": None}, "/region", "null"),
        ({"name": "a", "token": "x"}, "/token", "unknown-field"),
        ({"name": "a", "state": "active"}, "/state", "unknown-field"),
    ],
)
def test_it_refuses_a_bad_cluster(
    api: Api, cast: Cast, nothing_stored: Unchanged, body: Json, pointer: str, code: str
) -> None:
    with nothing_stored():
        answer = api(cast.oz).post(CLUSTERS, body, format="json")
    assert faults(answer) == [(pointer, code)]


def test_a_clusters_name_is_taken_once(api: Api, cast: Cast, nothing_stored: Unchanged) -> None:
    factories.cluster("north")
    with nothing_stored():
        answer = api(cast.oz).post(CLUSTERS, {"name": "north"}, format="json")
    assert answer.status_code == 409
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/name"]


def test_a_held_cluster_stays_so_when_heard_until_it_is_opened(api: Api, cast: Cast) -> None:
    cluster, client = factories.cluster(), api(cast.oz)
    url = f"{CLUSTERS}/{cluster.id}/queues"
    held = client.post(url, {"state": "held", "note": " New racks. "}, format="json")
    assert (held.status_code, held.json()["queue_state"]) == (200, "held")
    clusters.heard(cluster=cluster)
    shown = client.get(f"{CLUSTERS}/{cluster.id}").json()
    assert (shown["state"], shown["queue_state"]) == ("active", "held")
    [told] = client.get(url).json()
    assert (told["model"], told["queue_note"], told["queue_changed_by"]) == (
        "",
        "New racks.",
        "oz",
    )
    opened = client.post(url, {"state": "open"}, format="json")
    assert opened.json()["queue_state"] == "open"
    assert audited() == [
        ("queue.move", "oz", {"state": "open"}, {"state": "held", "note": "New racks."}),
        ("queue.move", "oz", {"state": "held"}, {"state": "open", "note": ""}),
    ]


def test_a_pool_is_drained_beside_others_that_stay_open(api: Api, cast: Cast) -> None:
    cluster, client = factories.cluster(), api(cast.oz)
    factories.node(cluster, gpus=1)
    factories.node(cluster, "n2", gpus=1, model="NVIDIA-L4")
    url, body = f"{CLUSTERS}/{cluster.id}/queues", {"state": "draining", "note": "Recall."}
    assert client.post(url, body | {"model": H100}, format="json").status_code == 200
    listed = [(each["model"], each["queue_state"]) for each in client.get(url).json()]
    assert listed == [("", "open"), (H100, "draining"), ("NVIDIA-L4", "open")]
    assert audited() == [
        (
            "queue.move",
            "oz",
            {"state": "open", "model": H100},
            {"state": "draining", "note": "Recall.", "model": H100},
        )
    ]


@pytest.mark.parametrize(
    ("body", "pointer", "told"),
    [
        ({"state": "held"}, "/note", "Say why"),
        ({"state": "held", "note": "a\u202eb"}, "/note", "bidirectional"),
        ({"state": "ajar", "note": "x"}, "/state", "ajar"),
        ({"state": "held", "note": "x", "model": "A9"}, "/model", f"It has: {H100}."),
    ],
)
def test_a_queue_is_moved_nowhere_by_what_is_wrong(
    api: Api, cast: Cast, nothing_stored: Unchanged, body: Json, pointer: str, told: str
) -> None:
    cluster = factories.cluster()
    factories.node(cluster, gpus=1)
    with nothing_stored():
        answer = api(cast.oz).post(f"{CLUSTERS}/{cluster.id}/queues", body, format="json")
    assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]
    assert told in answer.json()["errors"][0]["message"]


@pytest.mark.parametrize(("state", "model"), [("held", H100), ("held", ""), ("open", "")])
def test_a_queue_that_is_so_already_is_a_conflict(
    api: Api, cast: Cast, nothing_stored: Unchanged, state: str, model: str
) -> None:
    cluster = factories.cluster()
    if state == "held":
        factories.close(cluster, model)
    body = {"state": state, "note": "x", "model": model}
    with nothing_stored():
        answer = api(cast.oz).post(f"{CLUSTERS}/{cluster.id}/queues", body, format="json")
    assert answer.status_code == 409
    assert f"is {state} already" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("meaning", "isolation"),
    [
        ({"kind": "whole", "model": H100, "memory_mib": 81_559}, "hardware"),
        ({"kind": "mig", "model": H100, "profile": "1g.10gb"}, "hardware"),
        ({"kind": "share", "model": H100, "isolation": "memory"}, "memory"),
        ({"kind": "whole", "model": H100, "capacity": "spot"}, "hardware"),
        ({"kind": "mig", "model": H100, "profile": "1g.10gb", "capacity": "reserved"}, "hardware"),
        ({"kind": "cpu"}, "hardware"),
        ({"kind": "cpu", "placing": "spread"}, "hardware"),
    ],
)
def test_a_flavor_is_made(api: Api, cast: Cast, meaning: Json, isolation: str) -> None:
    answer = api(cast.oz).post(FLAVORS, {"name": "one", **meaning}, format="json")
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert made["isolation"] == isolation
    assert {name: made[name] for name in meaning} == meaning
    assert api(cast.ben).get(FLAVORS).json()["items"] == [made]
    [(action, by, before, after)] = audited()
    assert (action, by, before, after["name"]) == ("flavor.create", "oz", {}, "one")


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"name": "H100"}, "/name", "invalid"),
        ({"name": "a-"}, "/name", "invalid"),
        ({"name": "a" * 64}, "/name", "max-length"),
        ({"name": None}, "/name", "null"),
        ({"kind": "gpu"}, "/kind", "invalid-choice"),
        ({"kind": "mig"}, "/profile", "required"),
        ({"profile": "1g.10gb"}, "/profile", "invalid"),
        ({"model": ""}, "/model", "required"),
        ({"kind": "cpu"}, "/model", "invalid"),
        ({"capacity": "cheap"}, "/capacity", "invalid-choice"),
        ({"kind": "cpu", "model": "", "capacity": "spot"}, "/capacity", "invalid"),
        ({"model": f"{H100} (spot)"}, "/model", "invalid"),
        ({"kind": "share"}, "/isolation", "required"),
        ({"kind": "share", "isolation": "hardware"}, "/isolation", "invalid"),
        ({"isolation": "none"}, "/isolation", "invalid"),
        ({"isolation": "magic"}, "/isolation", "invalid-choice"),
        ({"placing": "random"}, "/placing", "invalid-choice"),
        ({"kind": "mig", "profile": "1g.10gb", "placing": "spread"}, "/placing", "invalid"),
        ({"memory_mib": -1}, "/memory_mib", "min-value"),
        ({"memory_mib": "5"}, "/memory_mib", "wrong-type"),
        ({"model": "a\nb"}, "/model", "bad-character"),
        ({"price": "5"}, "/price", "unknown-field"),
        ({"kind": "model"}, "/name", "invalid"),
        ({"name": "h100.sevenths"}, "/name", "invalid"),
        ({"kind": "model", "name": "h.sevenths", "profile": "1g.10gb"}, "/profile", "invalid"),
    ],
)
def test_it_refuses_a_bad_flavor(
    api: Api, cast: Cast, nothing_stored: Unchanged, change: Json, pointer: str, code: str
) -> None:
    body = {"name": "h100", "kind": "whole", "model": H100} | change
    with nothing_stored():
        answer = api(cast.oz).post(FLAVORS, body, format="json")
    assert (pointer, code) in faults(answer)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"model": "other"}, "/name"),
        ({"name": "other"}, "/kind"),
        ({"name": "other", "capacity": "spot"}, "/kind"),
    ],
)
def test_a_flavors_name_and_meaning_are_taken_once(
    api: Api, cast: Cast, nothing_stored: Unchanged, change: Json, pointer: str
) -> None:
    factories.flavor("h100-80gb")
    factories.flavor("spot", capacity="spot")
    body = {"name": "h100-80gb", "kind": "whole", "model": H100} | change
    with nothing_stored():
        answer = api(cast.oz).post(FLAVORS, body, format="json")
    assert answer.status_code == 409
    assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]


def test_a_flavors_pods_are_spread_from_now_on(api: Api, cast: Cast) -> None:
    flavor = factories.flavor()
    url, client = f"{FLAVORS}/{flavor.id}/placing", api(cast.oz)
    for placing in ("spread", "spread", "pack"):
        answer = client.post(url, {"placing": placing}, format="json")
        assert (answer.status_code, answer.json()["placing"]) == (200, placing)
        assert client.get(FLAVORS).json()["items"] == [answer.json()]
    assert audited() == [
        ("flavor.place", "oz", {"placing": "pack"}, {"placing": "spread"}),
        ("flavor.place", "oz", {"placing": "spread"}, {"placing": "pack"}),
    ]


def test_slices_and_shares_are_packed_always(
    api: Api, cast: Cast, nothing_stored: Unchanged
) -> None:
    url = f"{FLAVORS}/{factories.mig_flavor().id}/placing"
    with nothing_stored():
        answer = api(cast.oz).post(url, {"placing": "spread"}, format="json")
    assert faults(answer) == [("/placing", "invalid")]
    missing = f"{FLAVORS}/{cast.oz.id}/placing"
    assert api(cast.oz).post(missing, {"placing": "spread"}, format="json").status_code == 404


def test_a_key_makes_each_of_them_once(api: Api, cast: Cast) -> None:
    factories.flavor()
    client = api(cast.oz)
    for url, body in (
        (CLUSTERS, {"name": "gpu-1"}),
        (FLAVORS, {"name": "cpu", "kind": "cpu"}),
        (RATES, PRICE),
    ):
        headers = {"Idempotency-Key": "one"}
        answers = [client.post(url, body, format="json", headers=headers) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [201, 201]
        assert answers[0].json() == answers[1].json()
    assert (Cluster.objects.count(), Flavor.objects.count(), Rate.objects.count()) == (1, 2, 1)


@pytest.mark.parametrize(
    ("scopes", "status"), [([Scope.OPERATE], 201), ([Scope.READ, Scope.SUBMIT, Scope.QUOTA], 403)]
)
def test_a_token_needs_the_scope(cast: Cast, scopes: list[Scope], status: int) -> None:
    factories.flavor()
    client = APIClient(headers=factories.bearer(factories.token(cast.oz, *scopes)))
    got = [
        client.post(url, body, format="json").status_code
        for url, body in (
            (CLUSTERS, {"name": "gpu-1"}),
            (FLAVORS, {"name": "cpu", "kind": "cpu"}),
            (RATES, PRICE),
        )
    ]
    assert got == [status] * 3


def test_an_operator_of_a_tenant_may_not(api: Api, cast: Cast, nothing_stored: Unchanged) -> None:
    cluster = factories.cluster()
    with nothing_stored():
        for url in (CLUSTERS, FLAVORS, RATES, f"{CLUSTERS}/{cluster.id}/queues"):
            # Refused before the body is looked at: what is wrong with it is not theirs to learn.
            assert api(cast.ada).post(url).status_code == 403
