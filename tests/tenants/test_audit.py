"""Who may read what of the audit."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from controlplane.audit.actions import ACTIONS
from controlplane.audit.models import AuditEvent
from controlplane.audit.services import Entry, record
from controlplane.kernel.errors import NotAllowed, NotFound
from scheduler.services import transition
from tenants.access import Actor, actor_for
from tenants.models import Role, Scope, User
from tenants.selectors import audit
from tenants.selectors.audit import PAGE, Asked
from tests import factories
from tests.conftest import Cast
from tests.factories import AT


def write(
    name: str,
    *,
    tenant: UUID | None = None,
    project: UUID | None = None,
    action: str = "project.weight",
    hours: int = 0,
    actor: str = "system:test",
) -> None:
    """An event that is known by the name of who did it."""
    entry = Entry(
        action, "thing", uuid4(), tenant, project, before={"weight": 1}, after={"weight": 2}
    )
    at = AT + timedelta(hours=hours)
    if action != "project.weight":
        entry = Entry(action, "thing", uuid4(), tenant, project)
    record(actor=actor, actor_name=name, entries=[entry], at=at)


@pytest.fixture
def written(cast: Cast) -> None:
    """One of the fleet, of each tenant, of each project."""
    write("fleet")
    for tenant in (cast.vision, cast.speech):
        write(tenant.name, tenant=tenant.id)
    for project in (cast.detection, cast.segmentation, cast.dialogue):
        write(project.name, tenant=project.tenant_id, project=project.id)


def read(actor: Actor, **asked: object) -> list[str]:
    events = audit.events(actor=actor, asked=Asked(**asked))  # type: ignore[arg-type]  # as given
    return [event.actor_name for event in events.order_by("-id")]


def of(user: User, *scopes: str, **fields: object) -> Actor:
    return actor_for(user=user, token=factories.token(user, *scopes, **fields) if scopes else None)


VISION = ["Segmentation", "Detection", "Vision Lab"]
ALL = ["Dialogue", "Segmentation", "Detection", "Speech Lab", "Vision Lab", "fleet"]


@pytest.mark.usefixtures("written")
class TestReading:
    def test_who_approves_or_operates_everywhere_reads_all(self, cast: Cast) -> None:
        assert read(of(cast.pia)) == ALL
        assert read(of(cast.oz)) == ALL

    def test_an_owner_reads_their_tenant_and_its_projects(self, cast: Cast) -> None:
        assert read(of(cast.ada)) == VISION

    def test_an_owner_of_what_is_above_reads_what_is_below(self, cast: Cast) -> None:
        lab = factories.tenant("Robots", parent=cast.vision)
        write("Robots", tenant=lab.id)
        assert read(of(cast.ada)) == ["Robots", *VISION]
        assert read(of(cast.ada), tenant=cast.vision.id) == ["Robots", *VISION]
        assert read(of(cast.ada), tenant=lab.id) == ["Robots"]

    def test_an_owner_of_a_project_reads_that_alone(self, cast: Cast) -> None:
        zoe = factories.user("zoe")
        factories.member(zoe, Role.OWNER, at=cast.detection)
        assert read(of(zoe)) == ["Detection"]
        with pytest.raises(NotAllowed):
            read(of(zoe), tenant=cast.vision.id)

    def test_members_and_viewers_read_nothing(self, cast: Cast) -> None:
        assert read(of(cast.ben)) == read(of(cast.vik)) == []
        assert not audit.may_read(of(cast.ben))
        assert audit.may_read(of(cast.ada))
        with pytest.raises(NotAllowed):
            read(of(cast.ben), project=cast.detection.id)

    def test_a_project_that_is_not_seen_is_not_there(self, cast: Cast) -> None:
        for unseen in (cast.dialogue.id, uuid4()):
            with pytest.raises(NotFound, match=r"There is no such project\."):
                read(of(cast.ada), project=unseen)
        with pytest.raises(NotFound, match=r"There is no such tenant\."):
            read(of(cast.ada), tenant=cast.speech.id)

    def test_a_token_reads_by_its_scope_and_in_its_project(self, cast: Cast) -> None:
        assert read(of(cast.ada, Scope.READ)) == VISION
        assert read(of(cast.ada, Scope.SUBMIT)) == []
        assert not audit.may_read(of(cast.ada, Scope.SUBMIT))
        bound = {"project": cast.detection}
        assert read(of(cast.ada, Scope.READ, **bound)) == ["Detection"]
        assert read(of(cast.oz, Scope.READ, **bound)) == ["Detection"]


def test_it_can_be_narrowed(cast: Cast) -> None:
    write("ada", action="queue.move", actor=f"user:{cast.ada.id}")
    write("ben", hours=1)
    write("cleo", hours=2)
    pia = of(cast.pia)
    assert read(pia, who="ben") == ["ben"]
    assert read(pia, people=True) == ["ada"]
    assert read(pia, who=f"user:{cast.ada.id}") == ["ada"]
    assert read(pia, actions=("queue.move",)) == ["ada"]
    assert read(pia, since=AT + timedelta(hours=1)) == ["cleo", "ben"]
    assert read(pia, until=AT + timedelta(hours=1)) == ["ada"]
    target = AuditEvent.objects.get(actor_name="cleo").target_id
    assert read(pia, target=target) == ["cleo"]


def test_pages_go_on_where_they_ended(cast: Cast) -> None:
    for nth in range(PAGE + 1):
        write(f"n{nth}", tenant=cast.vision.id, project=cast.detection.id)
    pia = of(cast.pia)
    first = audit.page(actor=pia, asked=Asked())
    assert [line.event.actor_name for line in first.lines] == [f"n{n}" for n in range(PAGE, 0, -1)]
    second = audit.page(actor=pia, asked=Asked(), before=first.older)
    assert [(line.event.actor_name, line.tenant, line.project) for line in second.lines] == [
        ("n0", "Vision Lab", "Detection")
    ]
    assert second.older is None
    [change] = second.lines[0].changes
    assert (change.field, change.before_text, change.after_text) == ("weight", "1", "2")


def test_what_is_alike_before_and_after_is_no_change(cast: Cast) -> None:
    entry = Entry(
        "request.amend", "quota", uuid4(),
        before={"note": "", "nominal_milli": 0, "version": 1, "flavor": "f"},
        after={"until_at": None, "nominal_milli": None, "version": 2, "flavor": "f"},
    )  # fmt: skip
    record(actor="system:test", actor_name="test", entries=[entry], at=AT)
    [line] = audit.page(actor=of(cast.pia), asked=Asked()).lines
    found = [(each.field, each.before, each.after) for each in line.changes]
    assert found == [("nominal_milli", 0, None), ("version", 1, 2)]


class TestClosedTable:
    def test_an_action_that_is_in_no_table_is_refused(self, db: None) -> None:
        with pytest.raises(ValueError, match=r"no audited action is called user\.steal"):
            write("x", action="user.steal")
        assert not AuditEvent.objects.exists()

    @pytest.mark.parametrize("side", ["before", "after"])
    def test_a_field_that_an_action_does_not_tell_of_is_refused(self, db: None, side: str) -> None:
        entry = Entry("token.issue", "token", uuid4(), **{side: {"name": "ci", "secret": "s"}})  # type: ignore[arg-type]  # either
        with pytest.raises(ValueError, match=r"token\.issue does not tell of secret"):
            record(actor="system:test", actor_name="", entries=[entry], at=AT)

    def test_what_moves_workloads_in_bulk_tells_what_the_table_has(self) -> None:
        sql = transition._MOVE
        assert "'workload.state'" in sql
        assert "jsonb_build_object('state', after, 'why', message)" in sql
        assert ACTIONS["workload.state"] == {"state", "why"}
