"""POST /workloads and what follows: what is stored, how it is shown, who may stop it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from rest_framework.test import APIClient

from clusters.models import Node
from controlplane.audit.models import AuditEvent
from scheduler.core.lifecycle import State
from scheduler.loop.pods.claims import Pod
from scheduler.loop.pods.requests import pod_request
from scheduler.models import Operation, OperationKind, Workload
from scheduler.selectors import asked
from scheduler.web.submission import RENDEZVOUS
from tenants.models import Scope, User
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/workloads"


@pytest.fixture(autouse=True)
def fleet(cast: Cast) -> None:
    """Four nodes with eight H100s each, all of them Detection's."""
    north = factories.cluster("north")
    for number in range(4):
        factories.node(north, f"n{number}")
    factories.cluster("south")
    factories.quota(cast.detection, factories.flavor(), 32_000)
    factories.flavor("a100-80gb", model="NVIDIA-A100-SXM4-80GB")


def test_it_stores_a_pending_workload(api: Api, cast: Cast) -> None:
    answer = api(cast.ben).post(URL, factories.submission(cast.detection), format="json")
    assert answer.status_code == 201, answer.content
    row = Workload.objects.get()
    assert answer.json() == {"id": str(row.id), "name": "train", "state": "PENDING"}
    assert row.submitted_by == cast.ben
    assert AuditEvent.objects.get().actor == f"user:{cast.ben.id}"


def test_flavors_are_accepted_in_any_order(api: Api, cast: Cast) -> None:
    body = factories.submission(cast.detection)
    named = {"flavors": ["h100-80gb", "a100-80gb"], "any_order": True}
    body["pod_sets"][0] |= named
    made = api(cast.ben).post(URL, body, format="json")
    shown = api(cast.ben).get(f"{URL}/{made.json()['id']}").json()
    assert shown["pod_sets"][0].items() >= named.items()
    (planned,) = asked.of({made.json()["id"]: 1}).values()
    assert [pod_set.any_order for pod_set in planned.pod_sets] == [True]


def test_every_field_arrives_and_is_shown_again(api: Api, cast: Cast) -> None:
    pod_set = {
        "name": "worker",
        "count": 3,
        "min_count": 2,
        "cpu_milli": 1500,
        "memory_mib": 1000,
        "gpu_count": 2,
        "gpu_milli": 1000,
        "flavors": ["a100-80gb", "h100-80gb"],
        "any_order": False,
        "wish": {"least_memory_mib": 0, "vendors": ["nvidia"]},
        "gpu_memory_mib": None,
        "least_isolation": "memory",
        "topology": {"level": "nvlink", "mode": "preferred", "group_size": None},
        "image": "registry.example.org/a/b:1@sha256:00",
        "command": ["bash", "-c", "echo '\u202e'\nsleep 1"],
        "args": ["", "--x"],
        "env": {"LEVEL": "7", "EMPTY": ""},
    }
    body: dict[str, Any] = {  # Any: JSON values
        "name": "Größe \N{PILE OF POO} 1",
        "priority_class": "urgent",
        "preemptible": False,
        "run_time_limit_s": 60,
        "clusters": ["north"],
        "labels": {"team": "a", "example.org/x": ""},
        "topology": {"level": "rack", "mode": "preferred"},
        "retries": {"limit": 2, "on": ["node-lost", "start-error"], "exit_codes": [42, 7]},
        "grace_s": 300,
        "notice_s": 600,
        "cluster_loss_requeue_s": 900,
        "pod_sets": [pod_set],
    }
    client = api(cast.ben)
    made = client.post(URL, body | {"project": str(cast.detection.id)}, format="json")
    assert made.status_code == 201, made.content
    shown = client.get(f"{URL}/{made.json()['id']}").json()
    told = body | {"pod_sets": [pod_set | {"held_count": 0, "as_preferred": False}]}
    assert {name: shown[name] for name in body} == told
    assert (shown["pods"], shown["gpus"]) == (3, 6)
    assert shown["flavors"] == ["a100-80gb", "h100-80gb"]
    assert shown["submitted_by"] == "ben"
    assert shown["placements"] == []


def test_what_is_left_out_has_the_documented_default(api: Api, cast: Cast) -> None:
    body = factories.submission(cast.detection, name="  padded  ", pod_set={"count": 4})
    made = api(cast.ben).post(URL, body, format="json").json()
    shown = api(cast.ben).get(f"{URL}/{made['id']}").json()
    assert shown["name"] == "padded"
    assert (shown["priority_class"], shown["preemptible"]) == ("normal", True)
    assert (shown["run_time_limit_s"], shown["clusters"], shown["labels"]) == (None, [], {})
    assert shown["topology"] is None
    by_default = {"limit": 4, "on": ["refused", "node-lost", "evicted"], "exit_codes": []}
    assert shown["retries"] == by_default
    assert (shown["grace_s"], shown["notice_s"], shown["notice_until"]) == (30, 0, None)
    assert shown["cluster_loss_requeue_s"] is None
    assert (shown["move_to_better"], shown["moved_at"]) == (False, None)
    assert (shown["failures"], shown["node_losses"], shown["attempts"]) == (0, 0, [])
    assert (shown["pod_sets"][0]["min_count"], shown["pod_sets"][0]["gpu_milli"]) == (4, 1000)
    assert shown["pod_sets"][0]["any_order"] is False
    assert shown["pod_sets"][0]["wish"] is None
    assert shown["pod_sets"][0]["gpu_memory_mib"] is None
    assert shown["pod_sets"][0]["least_isolation"] == "none"
    assert shown["pod_sets"][0]["topology"] is None


def test_what_no_domain_holds_is_refused_with_the_numbers(api: Api, cast: Cast) -> None:
    Node.objects.update(labels={"network.topology.nvidia.com/leaf": "r1"})
    Node.objects.filter(name="n3").update(labels={"network.topology.nvidia.com/leaf": "r2"})
    body = factories.submission(cast.detection, pod_set={"count": 25})
    body["topology"] = {"level": "rack"}
    answer = api(cast.ben).post(URL, body, format="json")
    assert answer.status_code == 400
    [error] = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/topology", "exceeds-capacity")
    assert error["message"] == (
        "All 25 pods have to be in one rack; even empty, the largest of 2 takes 24."
    )
    assert api(cast.ben).post(URL, body | {"topology": None}, format="json").status_code == 201


def test_each_group_of_a_pod_set_is_asked_for_in_one_domain(api: Api, cast: Cast) -> None:
    Node.objects.update(labels={"network.topology.nvidia.com/leaf": "r1"})
    grouped = {"level": "rack", "group_size": 2}
    body = factories.submission(cast.detection, pod_set={"count": 4, "topology": grouped})
    made = api(cast.ben).post(URL, body, format="json")
    assert made.status_code == 201, made.content
    [shown] = api(cast.ben).get(f"{URL}/{made.json()['id']}").json()["pod_sets"]
    assert shown["topology"] == {"level": "rack", "mode": "required", "group_size": 2}


def test_a_pod_set_that_no_domain_holds_is_refused_by_its_own_field(api: Api, cast: Cast) -> None:
    Node.objects.update(labels={"network.topology.nvidia.com/leaf": "r1"})
    Node.objects.filter(name="n3").update(labels={"network.topology.nvidia.com/leaf": "r2"})
    alone = {"count": 25, "topology": {"level": "rack"}}
    body = factories.submission(cast.detection, pod_set=alone)
    [error] = api(cast.ben).post(URL, body, format="json").json()["errors"]
    assert (error["pointer"], error["code"]) == ("/pod_sets/0/topology", "exceeds-capacity")
    assert error["message"] == (
        "All 25 pods of main have to be in one rack; even empty, the largest of 2 takes 24."
    )


@pytest.mark.parametrize("level", ["rack", "zone"])
def test_a_pod_set_in_no_narrower_level_than_all_pods_is_refused(
    api: Api, cast: Cast, level: str
) -> None:
    body = factories.submission(cast.detection, pod_set={"topology": {"level": level}})
    body["topology"] = {"level": "rack"}
    [error] = api(cast.ben).post(URL, body, format="json").json()["errors"]
    assert (error["pointer"], error["code"]) == ("/pod_sets/0/topology/level", "wider-level")
    assert error["message"] == (
        "All pods have to be in one rack already: a level inside of it is wanted, one of nvlink,"
        f" node, not {level}."
    )
    body["topology"] = {"level": "rack", "mode": "preferred"}
    wish = {"level": level, "mode": "preferred"}
    body["pod_sets"][0]["topology"] = wish
    assert api(cast.ben).post(URL, body, format="json").status_code == 201


def test_a_batch_keeps_its_order(api: Api, cast: Cast) -> None:
    one = factories.submission(cast.detection)
    del one["project"]
    specs = [one | {"name": f"w{number}"} for number in range(20)]
    body = {"project": str(cast.detection.id), "workloads": specs}
    items = api(cast.ben).post(f"{URL}/batch", body, format="json").json()["items"]
    assert [item["name"] for item in items] == [f"w{number}" for number in range(20)]
    ids = [UUID(item["id"]) for item in items]
    assert ids == sorted(ids) == list(Workload.objects.order_by("id").values_list("id", flat=True))


def test_a_token_with_the_scope_submits_in_its_users_name(cast: Cast) -> None:
    token = factories.token(cast.ben, Scope.SUBMIT, project=cast.detection)
    client = APIClient(headers=factories.bearer(token))
    body = factories.submission(cast.detection)
    assert client.post(URL, body, format="json").status_code == 201
    assert Workload.objects.get().submitted_by == cast.ben
    assert AuditEvent.objects.get().actor == f"token:{token.id}"


def test_the_events_tell_its_story(api: Api, cast: Cast) -> None:
    made = api(cast.ben).post(URL, factories.submission(cast.detection), format="json").json()
    api(cast.ben).post(f"{URL}/{made['id']}/cancel")
    items = api(cast.ben).get(f"{URL}/{made['id']}/events").json()["items"]
    assert [(item["before"], item["after"]) for item in items] == [
        ("", "PENDING"),
        ("PENDING", "CANCELLED"),
    ]
    assert items[1]["message"] == "cancelled by ben"


def test_stopping_a_running_workload_asks_its_cluster(api: Api, cast: Cast) -> None:
    flavor = cast.detection.quotas.get().flavor
    row = factories.workload(cast.detection, cast.ben, [flavor], state=State.RUNNING)
    factories.place(row, factories.node(factories.cluster("east")), flavor)
    answer = api(cast.ben).post(f"{URL}/{row.id}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (200, "CANCELLING")
    assert Operation.objects.get().kind == OperationKind.STOP
    assert api(cast.ben).post(f"{URL}/{row.id}/cancel").json()["state"] == "CANCELLING"


def test_stopping_takes_no_body_and_nothing_that_has_ended(api: Api, cast: Cast) -> None:
    flavor = cast.detection.quotas.get().flavor
    row = factories.workload(cast.detection, cast.ben, [flavor], state=State.SUCCEEDED)
    assert api(cast.ben).post(f"{URL}/{row.id}/cancel").status_code == 409
    answer = api(cast.ben).post(f"{URL}/{row.id}/cancel", {"force": True}, format="json")
    assert answer.status_code == 400


def test_a_member_stops_only_their_own(api: Api, cast: Cast) -> None:
    flavor = cast.detection.quotas.get().flavor
    row = factories.workload(cast.detection, cast.ada, [flavor])
    assert api(cast.ben).post(f"{URL}/{row.id}/cancel").status_code == 403
    assert api(cast.ada).post(f"{URL}/{row.id}/cancel").status_code == 200


def test_its_placements_are_shown_the_newest_attempt_first(api: Api, cast: Cast) -> None:
    flavor = cast.detection.quotas.get().flavor
    labels = {"topology.kubernetes.io/zone": "z1", "kubernetes.io/hostname": "n1", "a/b": "c"}
    node = factories.node(factories.cluster("east"), gpus=2, labels=labels)
    row = factories.workload(cast.detection, cast.ben, [flavor], state=State.RUNNING, pods=2)
    old = factories.place(row, node, flavor)
    type(old.attempt).objects.update(ended_at=datetime.now(UTC), outcome="lost")
    for rank in (1, 0):
        placed = factories.place(row, node, flavor, rank=rank)
        factories.span(placed, node.devices.get(ordinal=rank))
    shown = api(cast.ben).get(f"{URL}/{row.id}").json()["placements"]
    assert [(each["attempt"], each["rank"]) for each in shown] == [(2, 0), (2, 1), (1, 0)]
    assert shown[1]["spans"] == [{"device": 1, "start": 0, "end": 1000}]
    assert (shown[0]["cluster"], shown[0]["node"]) == ("east", "n1")
    assert shown[0]["topology"] == {"zone": "z1", "node": "n1"}


def test_what_its_cluster_has_not_done_yet_is_shown(api: Api, cast: Cast) -> None:
    flavor = cast.detection.quotas.get().flavor
    row = factories.workload(cast.detection, cast.ben, [flavor], state=State.ADMITTED)
    placed = factories.place(row, factories.node(factories.cluster("east")), flavor)
    client = api(cast.ben)
    assert client.get(f"{URL}/{row.id}").json()["dispatch"] is None
    start = Operation.objects.create(
        attempt=placed.attempt, kind=OperationKind.START, failures=2, last_error="forbidden",
        due_at=factories.AT,
    )  # fmt: skip
    assert client.get(f"{URL}/{row.id}").json()["dispatch"] == {
        "kind": "start",
        "failures": 2,
        "last_error": "forbidden",
        "next_try_at": "2026-11-21T09:00:00Z",
    }
    stop = Operation.objects.create(attempt=placed.attempt, kind=OperationKind.STOP)
    assert client.get(f"{URL}/{row.id}").json()["dispatch"]["kind"] == "stop"
    Operation.objects.filter(id__in=[start.id, stop.id]).update(done_at=factories.AT)
    assert client.get(f"{URL}/{row.id}").json()["dispatch"] is None


def test_the_refused_environment_is_what_a_gangs_pods_are_given() -> None:
    pod = Pod(
        placement_id=UUID(int=1), workload_id=UUID(int=2), attempt=1, rank=0, peers=2,
        namespace="x", name="w2-1-0", uid="", hostname="n1", image="x", command=(), args=(),
        env=(), cpu_milli=1, memory_mib=1, flavor_kind="cpu", profile="", gpu_count=0,
        amount_milli=1, gpu_memory_mib=None, isolation="hardware", share_replicas=1,
        share_resource="", gpu_resource="nvidia.com/gpu", mig_single=False, run_time_limit_s=None,
        grace_s=30, notice_s=0, array_index=None, array_size=None, least=1, most=2,
        priority="normal", opened=False,
        dismissed=False,
    )  # fmt: skip
    assert {name for name, _ in pod_request(pod).env} == RENDEZVOUS
