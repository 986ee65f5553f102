"""Making, naming and moving tenants and projects: by owners, never with live work, never two that
read alike."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.models import Workload
from tenants.access import Actor, actor_for
from tenants.models import Project, Role, Tenant, User
from tenants.selectors import audit
from tenants.selectors.audit import Asked
from tenants.services import projects, tenants, weights
from tests import factories
from tests.conftest import Cast
from tests.factories import AT
from tests.scheduler.locks import until_somebody_waits
from tests.waiting import PATIENCE_S

MOVES = ("project.leave", "project.move", "tenant.leave", "tenant.move")


def of(user: User) -> Actor:
    return actor_for(user=user)


def made(cast: Cast, name: str = "Robots", slug: str = "robots", **given: Any) -> Tenant:
    """By ada below Vision Lab, unless said otherwise."""
    fields: dict[str, Any] = {"actor": of(cast.ada), "parent": cast.vision}
    return tenants.create(name=name, slug=slug, at=AT, **fields | given)


@pytest.fixture
def root(cast: Cast) -> User:
    """Owner of the whole fleet."""
    user = factories.user("root")
    factories.member(user, Role.OWNER)
    return user


class TestMaking:
    def test_an_owner_makes_departments_and_who_owns_the_fleet_organisations(
        self, cast: Cast, root: User
    ) -> None:
        lab = made(cast)
        assert (lab.parent, lab.name, lab.slug, lab.weight) == (cast.vision, "Robots", "robots", 1)
        event = AuditEvent.objects.get(action="tenant.create")
        assert event.after == {"name": "Robots", "slug": "robots", "parent": str(cast.vision.id)}
        assert event.tenant_id == lab.id
        top = made(cast, "Bank", "bank", actor=of(root), parent=None, weight=3)
        assert (top.parent, top.weight) == (None, 3)

    @pytest.mark.parametrize("who", ["ben", "vik", "oz", "pia"])
    def test_others_make_none(self, cast: Cast, who: str) -> None:
        actor = of(getattr(cast, who))
        with pytest.raises(NotAllowed):
            made(cast, actor=actor)
        with pytest.raises(NotAllowed):
            made(cast, actor=actor, parent=None)
        assert not Tenant.objects.filter(slug="robots").exists()

    def test_below_a_tenant_that_is_not_seen_there_is_none(self, cast: Cast) -> None:
        with pytest.raises(NotFound, match="no such tenant"):
            made(cast, parent=cast.speech)

    def test_an_owner_of_a_tenant_makes_no_organisation(self, cast: Cast) -> None:
        with pytest.raises(NotAllowed):
            made(cast, parent=None)

    @pytest.mark.parametrize(
        ("given", "pointer"),
        [
            ({"name": ""}, "/name"),
            ({"name": "Vis\N{CYRILLIC SMALL LETTER IE}on"}, "/name"),
            ({"slug": "Robots"}, "/slug"),
            ({"slug": "a" * 41}, "/slug"),
            ({"weight": 0}, "/weight"),
        ],
    )
    def test_what_can_not_be_is_refused(
        self, cast: Cast, given: dict[str, Any], pointer: str
    ) -> None:
        with pytest.raises(Invalid) as refused:
            made(cast, **given)
        assert refused.value.pointer == pointer

    def test_a_slug_stands_once(self, cast: Cast) -> None:
        with pytest.raises(Conflict, match="There is a tenant speech-lab already") as refused:
            made(cast, slug="speech-lab")
        assert refused.value.pointer == "/slug"

    def test_what_another_wall_refuses_is_no_slug_that_is_taken(
        self, cast: Cast, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(weights, "check", lambda weight: None)
        with pytest.raises(IntegrityError, match="tenant_weight_in_range"):
            made(cast, weight=0)
        actor = of(cast.ada)
        with pytest.raises(IntegrityError, match="project_weight_in_range"):
            projects.create(
                actor=actor, tenant=cast.vision, name="Arms", slug="arms", weight=0, at=AT
            )

    def test_names_that_read_alike_do_not_stand_side_by_side(self, cast: Cast, root: User) -> None:
        made(cast, "AI Lab", "ai")
        with pytest.raises(Invalid, match="reads like 'AI Lab'"):
            made(cast, "Al-Lab", "al")
        made(cast, "Al-Lab", "al", actor=of(root), parent=cast.speech)
        with pytest.raises(Invalid, match="reads like 'Detection'"):
            projects.create(
                actor=of(cast.ada), tenant=cast.vision, name="Detecti0n", slug="two", at=AT
            )

    def test_the_tree_has_so_many_levels_at_most(
        self, cast: Cast, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tenants, "MOST_LEVELS", 2)
        lab = made(cast)
        with pytest.raises(Invalid, match="would have 3 levels; 2 are the most") as refused:
            made(cast, "Arms", "arms", parent=lab)
        assert (refused.value.pointer, refused.value.code) == ("/parent", "too-deep")


class TestNaming:
    def test_what_is_renamed_keeps_its_slug_and_namespace(self, cast: Cast) -> None:
        before = cast.detection.namespace
        tenants.rename(actor=of(cast.ada), tenant=cast.vision, name="Visions", at=AT)
        projects.rename(actor=of(cast.ada), project=cast.detection, name="Finding", at=AT)
        cast.vision.refresh_from_db()
        cast.detection.refresh_from_db()
        assert (cast.vision.name, cast.vision.slug) == ("Visions", "vision-lab")
        assert (cast.detection.name, cast.detection.namespace) == ("Finding", before)
        told = AuditEvent.objects.filter(action__endswith=".rename").order_by("id")
        assert list(told.values_list("before", "after")) == [
            ({"name": "Vision Lab"}, {"name": "Visions"}),
            ({"name": "Detection"}, {"name": "Finding"}),
        ]

    def test_its_own_name_may_be_written_otherwise(self, cast: Cast) -> None:
        tenants.rename(actor=of(cast.ada), tenant=cast.vision, name="VISION LAB", at=AT)

    def test_not_like_a_neighbour_and_not_by_others(self, cast: Cast, root: User) -> None:
        with pytest.raises(Invalid, match="reads like 'Speech Lab'"):
            tenants.rename(actor=of(root), tenant=cast.vision, name="Speech lab", at=AT)
        with pytest.raises(Invalid, match="reads like 'Segmentation'"):
            projects.rename(actor=of(cast.ada), project=cast.detection, name="segmentatlon", at=AT)
        with pytest.raises(NotAllowed):
            projects.rename(actor=of(cast.ben), project=cast.detection, name="Mine", at=AT)
        with pytest.raises(NotFound):
            tenants.rename(actor=of(cast.ada), tenant=cast.speech, name="Ours", at=AT)


class TestMoving:
    def test_a_project_goes_with_what_it_used(self, cast: Cast, root: User) -> None:
        factories.workload(cast.detection, cast.ben, [factories.flavor()], state=State.SUCCEEDED)
        moved = projects.move(actor=of(root), project=cast.detection, tenant=cast.speech, at=AT)
        assert moved.tenant_id == cast.speech.id
        event = AuditEvent.objects.get(action="project.move")
        assert (event.before, event.after) == (
            {"tenant_id": str(cast.vision.id)},
            {"tenant_id": str(cast.speech.id)},
        )

    def test_a_department_goes_with_all_below_it(self, cast: Cast, root: User) -> None:
        lab = made(cast)
        factories.project(lab, "Arms")
        tenants.move(actor=of(root), tenant=lab, parent=cast.speech, at=AT)
        assert Tenant.objects.get(id=lab.id).parent_id == cast.speech.id
        tenants.move(actor=of(root), tenant=lab, parent=None, at=AT)
        assert Tenant.objects.get(id=lab.id).parent_id is None

    def test_who_reads_the_audit_of_where_it_was_reads_that_it_left(
        self, cast: Cast, root: User
    ) -> None:
        lab = made(cast)
        factories.member(cast.cleo, Role.OWNER, at=cast.speech)
        projects.move(actor=of(root), project=cast.detection, tenant=cast.speech, at=AT)
        tenants.move(actor=of(root), tenant=lab, parent=cast.speech, at=AT)

        def read(user: User) -> list[tuple[str, object]]:
            events = audit.events(actor=of(user), asked=Asked(actions=MOVES)).order_by("id")
            return [(event.action, event.target_id) for event in events]

        left = [("project.leave", cast.detection.id), ("tenant.leave", lab.id)]
        came = [("project.move", cast.detection.id), ("tenant.move", lab.id)]
        assert read(cast.ada) == left
        assert read(cast.cleo) == came
        assert set(read(root)) == {*left, *came}
        told = AuditEvent.objects.get(action="project.leave")
        assert (told.before, told.after) == ({"name": "Detection", "slug": "detection"}, {})

    def test_what_stays_or_hung_nowhere_leaves_nothing(self, cast: Cast, root: User) -> None:
        projects.move(actor=of(root), project=cast.detection, tenant=cast.vision, at=AT)
        tenants.move(actor=of(root), tenant=cast.vision, parent=cast.speech, at=AT)
        assert not AuditEvent.objects.filter(action__endswith=".leave").exists()

    @pytest.mark.parametrize("state", [state for state in State if state not in TERMINAL])
    def test_nothing_is_moved_while_its_work_is_live(
        self, cast: Cast, root: User, state: State
    ) -> None:
        lab = made(cast)
        arms = factories.project(factories.tenant("Deep", parent=lab), "Arms")
        factories.workload(arms, cast.ben, [factories.flavor()], state=state)
        with pytest.raises(Conflict, match="Work of Arms waits or runs"):
            projects.move(actor=of(root), project=arms, tenant=cast.speech, at=AT)
        with pytest.raises(Conflict, match="Work of Robots waits or runs"):
            tenants.move(actor=of(root), tenant=lab, parent=cast.speech, at=AT)
        assert Project.objects.get(id=arms.id).tenant_id == arms.tenant_id
        assert Tenant.objects.get(id=lab.id).parent_id == cast.vision.id

    def test_a_tree_has_no_cycle(self, cast: Cast, root: User) -> None:
        lab = made(cast)
        for parent in (cast.vision, lab):
            with pytest.raises(Invalid, match="that would be a cycle") as refused:
                tenants.move(actor=of(root), tenant=cast.vision, parent=parent, at=AT)
            assert (refused.value.pointer, refused.value.code) == ("/parent", "cycle")

    def test_it_gets_no_deeper_than_may_be(
        self, cast: Cast, root: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tenants, "MOST_LEVELS", 3)
        arms = made(cast, "Arms", "arms", parent=made(cast))
        assert arms.parent is not None
        with pytest.raises(Invalid, match="would have 4 levels"):
            tenants.move(actor=of(root), tenant=cast.vision, parent=cast.speech, at=AT)

    def test_who_owns_one_place_only_moves_nothing(self, cast: Cast) -> None:
        actor = of(cast.ada)
        lab = made(cast)
        with pytest.raises(NotFound):
            projects.move(actor=actor, project=cast.detection, tenant=cast.speech, at=AT)
        factories.member(cast.ada, Role.VIEWER, at=cast.speech)
        with pytest.raises(NotAllowed):
            projects.move(actor=of(cast.ada), project=cast.detection, tenant=cast.speech, at=AT)
        with pytest.raises(NotAllowed):
            tenants.move(actor=of(cast.ada), tenant=lab, parent=cast.speech, at=AT)
        with pytest.raises(NotAllowed):
            tenants.move(actor=of(cast.ada), tenant=lab, parent=None, at=AT)

    def test_not_beside_a_name_that_reads_alike(self, cast: Cast, root: User) -> None:
        lab = made(cast, "Dialogs", "dialogs")
        factories.tenant("Dia1ogs", parent=cast.speech)
        with pytest.raises(Invalid, match="reads like 'Dia1ogs'") as refused:
            tenants.move(actor=of(root), tenant=lab, parent=cast.speech, at=AT)
        assert refused.value.pointer == "/parent"

    def test_not_where_its_slug_is_taken(self, cast: Cast, root: User) -> None:
        factories.project(cast.speech, "Detecting things", slug=cast.detection.slug)
        with pytest.raises(Conflict, match="Speech Lab has a project detection already"):
            projects.move(actor=of(root), project=cast.detection, tenant=cast.speech, at=AT)


@pytest.mark.django_db(transaction=True)
def test_what_is_submitted_while_it_moves_keeps_it_where_it_is(cast: Cast) -> None:
    """Whoever submits has the project's row: the move waits for it, and sees the work then."""
    flavor = factories.flavor()
    root = factories.user("root")
    factories.member(root, Role.OWNER)

    def move(of_what: str) -> str:
        try:
            if of_what == "project":
                projects.move(actor=of(root), project=cast.detection, tenant=cast.speech, at=AT)
            else:
                tenants.move(actor=of(root), tenant=cast.vision, parent=cast.speech, at=AT)
        except Conflict as error:
            return error.message
        finally:
            connection.close()
        return "moved"

    for of_what in ("project", "tenant"):
        with ThreadPoolExecutor(1) as thread:
            with transaction.atomic():
                Project.objects.select_for_update(no_key=True).get(id=cast.detection.id)
                work = factories.workload(cast.detection, cast.ben, [flavor], of_what)
                answer = thread.submit(move, of_what)
                until_somebody_waits()
            assert "waits or runs" in answer.result(PATIENCE_S)
        Workload.objects.filter(id=work.id).update(
            state="CANCELLED", ended_at=AT, version=F("version") + 1
        )
    assert move("project") == "moved"
