"""A project's confinement: applied, its drift told and put right, and what is not ours let be."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from clusters.confinement import Confinement, Drift, Repair
from clusters.port import ClusterError, Fault
from tests.contract.stage import Stage

_serial = count(1)
OBJECTS = {
    "ServiceAccount berth-workload": "/api/v1/namespaces/{}/serviceaccounts/berth-workload",
    "NetworkPolicy berth": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies/berth",
    "LimitRange berth": "/api/v1/namespaces/{}/limitranges/berth",
    "ResourceQuota berth": "/api/v1/namespaces/{}/resourcequotas/berth",
}
LABEL = "berth.dev/installation"

type Json = Any  # an object of the API


@pytest.fixture
def wanted(stage: Stage) -> Iterator[Confinement]:
    """Of a namespace that is confined so."""
    name = f"confined-{next(_serial)}"
    found = Confinement(name, (("nvidia.com/gpu", 8),), ("10.0.0.0/8",))
    assert stage.port.confine(wanted=found)[0] == Drift(f"Namespace {name}")
    yield found
    if not stage.simulated:
        stage.admin("DELETE", f"/api/v1/namespaces/{name}")


def read(stage: Stage, wanted: Confinement, title: str) -> Json:
    return stage.admin("GET", where(wanted, title))


def where(wanted: Confinement, title: str) -> str:
    space = f"/api/v1/namespaces/{wanted.namespace}"
    return OBJECTS.get(title, space).format(wanted.namespace)


def write(stage: Stage, wanted: Confinement, title: str, body: Json) -> None:
    """Whatever became of it meanwhile: the cluster writes down what it counts of a quota."""
    del body["metadata"]["resourceVersion"]
    stage.admin("PUT", where(wanted, title), body)


def versions(stage: Stage, wanted: Confinement) -> dict[str, str]:
    """Of what is there, the quota aside: its status is counted by the cluster."""
    titles = ["Namespace", *OBJECTS]
    return {
        title: read(stage, wanted, title)["metadata"]["resourceVersion"]
        for title in titles
        if not title.startswith("ResourceQuota")
    }


def test_it_is_applied_once_and_left_as_it_is(stage: Stage, wanted: Confinement) -> None:
    before = versions(stage, wanted)
    assert stage.port.confine(wanted=wanted) == ()
    assert stage.port.confine(wanted=wanted, repair=Repair.NOTHING) == ()
    assert versions(stage, wanted) == before
    for title in OBJECTS:
        assert read(stage, wanted, title)["metadata"]["labels"][LABEL] == "berth"
    hard = read(stage, wanted, "ResourceQuota berth")["spec"]["hard"]
    assert hard == {"requests.nvidia.com/gpu": "8"}


def test_what_is_wanted_by_now_takes_the_place_of_what_was(
    stage: Stage, wanted: Confinement
) -> None:
    raised = replace(wanted, limits=(("nvidia.com/mig-1g.10gb", 7),), egress=())
    stage.port.confine(wanted=raised)
    hard = read(stage, wanted, "ResourceQuota berth")["spec"]["hard"]
    assert hard == {"requests.nvidia.com/mig-1g.10gb": "7"}
    assert len(read(stage, wanted, "NetworkPolicy berth")["spec"]["egress"]) == 2
    assert stage.port.confine(wanted=raised) == ()


def weaken_namespace(body: Json) -> None:
    body["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "privileged"


def pin_old_rules(body: Json) -> None:
    body["metadata"]["labels"]["pod-security.kubernetes.io/enforce-version"] = "v1.0"


def mount_tokens(body: Json) -> None:
    body["automountServiceAccountToken"] = True


def open_network(body: Json) -> None:
    body["spec"]["ingress"] = [{}]


def shrink_defaults(body: Json) -> None:
    body["spec"]["limits"][0]["defaultRequest"]["memory"] = "1Gi"


def close_wall(body: Json) -> None:
    """By a key of somebody else's, which an apply of ours does not touch."""
    body["spec"]["hard"]["pods"] = "0"


def raise_wall(body: Json) -> None:
    body["spec"]["hard"]["requests.nvidia.com/gpu"] = "64"


CHANGES = [
    (
        "Namespace",
        weaken_namespace,
        "metadata.labels.pod-security.kubernetes.io/enforce",
        '"privileged"',
    ),
    (
        "Namespace",
        pin_old_rules,
        "metadata.labels.pod-security.kubernetes.io/enforce-version",
        '"v1.0"',
    ),
    ("ServiceAccount berth-workload", mount_tokens, "automountServiceAccountToken", "true"),
    ("NetworkPolicy berth", open_network, "spec.ingress", "[{}]"),
    ("LimitRange berth", shrink_defaults, "spec.limits", '"memory":"1Gi"'),
    ("ResourceQuota berth", close_wall, "spec.hard.pods", '"0"'),
    ("ResourceQuota berth", raise_wall, "spec.hard.requests.nvidia.com/gpu", '"64"'),
]


@pytest.mark.parametrize(("title", "change", "field", "found"), CHANGES)
def test_a_field_that_somebody_changed_is_named_and_put_back(
    stage: Stage,
    wanted: Confinement,
    title: str,
    change: Callable[[Json], None],
    field: str,
    found: str,
) -> None:
    body = read(stage, wanted, title)
    change(body)
    write(stage, wanted, title, body)
    [told] = stage.port.confine(wanted=wanted, repair=Repair.NOTHING)
    assert (told.object.split()[0], told.field) == (title.split()[0], field)
    assert found in told.found
    assert found not in told.wanted
    assert stage.port.confine(wanted=wanted, repair=Repair.NOTHING) == (
        told,
    )  # nothing was changed
    assert stage.port.confine(wanted=wanted) == (told,)
    assert stage.port.confine(wanted=wanted) == ()


@pytest.mark.parametrize("title", OBJECTS)
def test_an_object_that_was_deleted_is_told_and_comes_back(
    stage: Stage, wanted: Confinement, title: str
) -> None:
    stage.admin("DELETE", where(wanted, title))
    assert stage.port.confine(wanted=wanted, repair=Repair.NOTHING) == (Drift(title),)
    assert stage.port.confine(wanted=wanted) == (Drift(title),)
    assert read(stage, wanted, title)["metadata"]["labels"][LABEL] == "berth"


def test_what_is_missing_is_made_alone(stage: Stage, wanted: Confinement) -> None:
    body = read(stage, wanted, "NetworkPolicy berth")
    open_network(body)
    write(stage, wanted, "NetworkPolicy berth", body)
    stage.admin("DELETE", where(wanted, "ServiceAccount berth-workload"))
    missing, opened = stage.port.confine(wanted=wanted, repair=Repair.MISSING)
    assert missing == Drift("ServiceAccount berth-workload")
    assert (opened.field, opened.follows) == ("spec.ingress", False)
    assert stage.port.confine(wanted=wanted, repair=Repair.MISSING) == (opened,)


def test_what_follows_from_what_is_wanted_is_told_so(stage: Stage, wanted: Confinement) -> None:
    raised = replace(wanted, limits=(("nvidia.com/gpu", 9),), egress=())
    told = stage.port.confine(wanted=raised)
    assert [(drift.field, drift.follows) for drift in told] == [
        ("spec.egress", True),
        ("spec.hard.requests.nvidia.com/gpu", True),
    ]


def test_a_namespace_that_is_not_there_is_told_with_all_that_belongs_in_it(stage: Stage) -> None:
    nowhere = Confinement(f"nowhere-{next(_serial)}")
    told = stage.port.confine(wanted=nowhere, repair=Repair.NOTHING)
    missing = [f"Namespace {nowhere.namespace}", *OBJECTS]
    assert told == tuple(Drift(title) for title in missing)


@pytest.mark.parametrize("title", ["Namespace", *OBJECTS])
@pytest.mark.parametrize("repair", list(Repair))
def test_an_object_of_somebody_else_is_let_be_and_so_is_all_else(
    stage: Stage, wanted: Confinement, title: str, repair: Repair
) -> None:
    body = read(stage, wanted, title)
    del body["metadata"]["labels"][LABEL]
    write(stage, wanted, title, body)
    before = versions(stage, wanted)
    with pytest.raises(ClusterError, match=r"is not this installation's") as call:
        stage.port.confine(wanted=replace(wanted, egress=()), repair=repair)
    assert call.value.fault is Fault.CONFLICT
    assert title.split()[0] in str(call.value)
    assert versions(stage, wanted) == before


def test_what_others_add_beside_it_is_theirs(stage: Stage, wanted: Confinement) -> None:
    body = read(stage, wanted, "Namespace")
    body["metadata"]["labels"]["team"] = "vision"
    write(stage, wanted, "Namespace", body)
    assert stage.port.confine(wanted=wanted) == ()
    assert read(stage, wanted, "Namespace")["metadata"]["labels"]["team"] == "vision"
