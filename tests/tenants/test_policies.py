"""Who says what may be submitted, what is refused of it, and what is written down."""

from typing import Any

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Invalid, NotAllowed, NotFound
from tenants.access import actor_for
from tenants.models import Project, Role, SubmitPolicy, Tenant, User
from tenants.policy import Rules, Said
from tenants.selectors import policies as selectors
from tenants.services import policies
from tenants.services.quotas import VersionMismatch
from tests import factories
from tests.conftest import Cast

pytestmark = pytest.mark.django_db

type Place = Project | Tenant | None


def put(by: User, of: Place, version: int = 0, **rules: Any) -> SubmitPolicy:  # Any: as of Rules
    return policies.set_policy(
        actor=actor_for(user=by), of=of, rules=Rules(**rules), version=version, at=factories.AT
    )


def why_not(by: User, of: Place, **rules: Any) -> list[tuple[str, str]]:  # Any: as of Rules
    before = list(SubmitPolicy.objects.values())
    with pytest.raises(Invalid) as refused:
        put(by, of, **rules)
    assert list(SubmitPolicy.objects.values()) == before
    return [(each.pointer, each.message) for each in refused.value.problems]


def test_it_is_said_and_changed_with_an_audit_row_each(cast: Cast) -> None:
    assert put(cast.oz, None, max_pods=8, images=("r/*",)).version == 1
    assert put(cast.oz, None, 1, max_pods=4, required_labels={"team": ("a",)}).version == 2
    [row] = SubmitPolicy.objects.all()
    assert row.rules == Rules(max_pods=4, required_labels={"team": ("a",)})
    first, second = AuditEvent.objects.filter(action="policy.set").order_by("id")
    assert (first.before, first.after["max_pods"]) == ({}, 8)
    assert (second.before["images"], second.after["images"]) == (["r/*"], [])
    assert (second.tenant_id, second.project_id) == (None, None)


def test_the_chain_is_from_the_fleet_down_and_of_nobody_beside(cast: Cast) -> None:
    department = factories.tenant("Robots", parent=cast.vision)
    arms = factories.project(department, "Arms")
    for nth, place in enumerate((None, cast.vision, department, arms, cast.detection), start=1):
        put(cast.oz, place, max_pods=10 - nth)

    def told(chain: tuple[Said, ...]) -> list[tuple[str, int | None]]:
        return [(said.by, said.rules.max_pods) for said in chain]

    whole = [("the fleet", 9), ("Vision Lab", 8), ("Robots", 7), ("Arms", 6)]
    assert told(selectors.of_project(arms)) == whole
    assert told(selectors.of_place(department)) == whole[:3]
    assert told(selectors.above(arms)) == whole[:3]
    assert told(selectors.above(department)) == whole[:2]
    assert told(selectors.above(cast.vision)) == whole[:1]
    assert told(selectors.above(None)) == []


def test_one_read_whatever_the_depth(cast: Cast, django_assert_num_queries: Any) -> None:
    """Any: pytest-django's context manager."""
    project = Project.objects.get(id=cast.detection.id)
    with django_assert_num_queries(1):
        selectors.of_project(project)


def test_whom_somebody_else_was_quicker_than_is_told_and_changes_nothing(cast: Cast) -> None:
    put(cast.oz, cast.detection, max_pods=8)
    with pytest.raises(VersionMismatch, match="at version 1 by now, not 0"):
        put(cast.oz, cast.detection, max_pods=9)
    assert SubmitPolicy.objects.get().max_pods == 8


def test_owners_say_it_of_their_place_and_operators_of_all(cast: Cast) -> None:
    put(cast.ada, cast.vision, max_pods=8)
    put(cast.ada, cast.detection, max_pods=7)
    for by, of in ((cast.ben, cast.detection), (cast.pia, cast.detection), (cast.ada, None)):
        with pytest.raises(NotAllowed):
            put(by, of)
    with pytest.raises(NotFound):
        put(cast.cleo, cast.vision)
    with pytest.raises(NotFound):
        put(cast.cleo, cast.detection)
    assert SubmitPolicy.objects.count() == 2


def test_what_was_said_from_above_its_own_people_do_not_change(cast: Cast) -> None:
    """Or a project would choose who pays."""
    owner = factories.user("olive")
    factories.member(owner, Role.OWNER, at=cast.detection)
    assert not put(owner, cast.detection, max_pods=8).is_from_above
    said = put(cast.ada, cast.detection, 1, required_labels={"cost-centre": ("47",)})
    assert said.is_from_above
    with pytest.raises(NotAllowed, match="What Detection says was said by who is above it"):
        put(owner, cast.detection, 2, required_labels={"cost-centre": ("48",)})
    assert put(cast.oz, cast.vision, max_pods=9).is_from_above
    with pytest.raises(NotAllowed, match="said by who is above it"):
        put(cast.ada, cast.vision, 1)
    # What is taken back from above is anybody's to say again.
    assert not put(cast.ada, cast.detection, 2).is_from_above
    assert put(owner, cast.detection, 3, max_pods=8).version == 4


@pytest.mark.parametrize(
    ("rules", "pointer", "why"),
    [
        ({"max_run_time_s": 0}, "/max_run_time_s", "0 is not between 1 and 7,776,000."),
        ({"max_pods": 4097}, "/max_pods", "4,097 is not between 1 and 4,096."),
        (
            {"priority_classes": ("top",)},
            "/priority_classes",
            "'top' is none; known: low, normal, high, urgent.",
        ),
        ({"priority_classes": ("low", "low")}, "/priority_classes", "Each may stand here once."),
        ({"forbidden_fields": ("name",)}, "/forbidden_fields", "'name' is none; known: any_order"),
        (
            {"images": ("registry.example*",)},
            "/images",
            "'registry.example*' is no image, and no beginning of images: that ends with /*, :* or"
            " @*.",
        ),
        ({"images": ("*",)}, "/images", "'*' is no image"),
        (
            {"required_labels": {"kubernetes.io/team": ()}},
            "/required_labels",
            "Labels of kubernetes.io are set by Berth and the cluster only.",
        ),
        ({"required_labels": {"-": ()}}, "/required_labels", "'-' is not a label key"),
        ({"required_labels": {"a": ("",)}}, "/required_labels", "a: a value that may be given"),
        ({"default_labels": {"a": "ä"}}, "/default_labels", "'\\xe4' is not a label value"),
        (
            {"max_run_time_s": 60, "default_run_time_s": 61},
            "/default_run_time_s",
            "61 s is more than the 1 min that Detection permits.",
        ),
        (
            {"required_labels": {"a": ("b",)}, "default_labels": {"a": "c"}},
            "/default_labels",
            "c is no a that Detection permits: b.",
        ),
    ],
)
def test_what_can_not_be_is_refused_with_what_would_be_right(
    cast: Cast, rules: dict[str, Any], pointer: str, why: str
) -> None:
    [(at, message)] = why_not(cast.oz, cast.detection, **rules)
    assert (at, message[: len(why)]) == (pointer, why)


def test_what_would_permit_more_than_above_is_refused(cast: Cast) -> None:
    put(cast.oz, cast.vision, max_pods=8)
    assert why_not(cast.oz, cast.detection, max_pods=9) == [
        ("/max_pods", "9 is more than the 8 that Vision Lab permits.")
    ]


def test_who_is_tightened_from_above_keeps_what_they_said_and_the_tighter_holds(
    cast: Cast,
) -> None:
    put(cast.oz, cast.detection, max_pods=8)
    put(cast.oz, None, max_pods=4)
    chain = selectors.of_project(cast.detection)
    assert [said.rules.max_pods for said in chain] == [4, 8]
