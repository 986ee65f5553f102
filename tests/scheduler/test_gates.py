"""Gates: declared with work or by its project, opened, refused, past their deadline (ADR 0046)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from scheduler.core.waits import GateView
from scheduler.loop import run
from scheduler.loop.preparing import gates as loop
from scheduler.models import Gate, GateState, Workload, WorkloadArray
from scheduler.selectors import due, fleet, waiting
from scheduler.selectors import gates as selectors
from scheduler.selectors.load import load_here
from scheduler.services import arrays, explaining, gates, workloads
from scheduler.services.specs import ArraySpec
from tenants.access import Actor, actor_for
from tenants.gating import GateSpec
from tenants.models import Role, Scope, StandingGate
from tenants.services import gates as standing
from tests import factories
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.stage import LATER, Stage
from tests.scheduler.test_retry import give_up
from tests.service_accounts import service_account

DATA = GateSpec("data", "data", "dan")
SOON = GateSpec("paid", "budget", "ada", 3600)


@pytest.fixture
def dan(stage: Stage) -> Actor:
    """Who keeps the data: he sees the project, and no more."""
    return keeper(stage)


def keeper(stage: Stage) -> Actor:
    user = factories.user("dan")
    factories.member(user, Role.VIEWER, at=stage.project)
    return actor_for(user=user)


def submit(stage: Stage, *asked: GateSpec, name: str = "train") -> Workload:
    of = replace(spec(stage.flavor.name, name=name), gates=asked)
    [made] = workloads.submit(actor=stage.actor, project=stage.project, specs=[of], at=AT)
    return made


def sweep(stage: Stage, *asked: GateSpec, size: int = 3) -> WorkloadArray:
    of = replace(spec(stage.flavor.name, name="sweep"), gates=asked)
    return arrays.submit(
        actor=stage.actor, project=stage.project, spec=of, array=ArraySpec(size), at=AT
    )


def decide(
    actor: Actor,
    work: Workload | WorkloadArray,
    name: str = "data",
    state: GateState = GateState.OPEN,
    note: str = "",
) -> Gate:
    return gates.decide(actor=actor, work=work, name=name, state=state, note=note, at=LATER)


def refuse(actor: Actor, work: Workload | WorkloadArray, note: str = "No licence.") -> Gate:
    return decide(actor, work, state=GateState.REFUSED, note=note)


def told(stage: Stage) -> list[GateView | None]:
    return [pending.gate for pending in load_here(at=AT).snapshot.pending]


def end_of(work: Workload) -> tuple[str, str]:
    work.refresh_from_db()
    return work.state, work.events.filter(kind="state").latest("id").message


class TestWaiting:
    def test_work_starts_once_all_its_gates_are_open(self, stage: Stage, dan: Actor) -> None:
        work = submit(stage, DATA, SOON)
        until = int((AT + timedelta(hours=1)).timestamp())
        assert told(stage) == [GateView("paid", "ada", int(AT.timestamp()), until, 2)]
        assert not stage.cycle().admitted
        decide(stage.actor, work, "paid")
        assert told(stage) == [GateView("data", "dan", int(AT.timestamp()))]
        assert not stage.cycle().admitted
        decide(dan, work, note="Copied.")
        assert told(stage) == [None]
        assert len(stage.cycle().admitted) == 1

    def test_its_reason_names_the_gate(self, committed: Stage) -> None:
        keeper(committed)
        work = submit(committed, DATA)
        run.run_cycle(at=AT)
        work.refresh_from_db()
        assert work.reason is not None
        assert work.reason["code"] == "gate"
        assert work.reason["text"].startswith("It waits for dan to open its gate data, since ")

    def test_a_project_puts_its_gates_before_all_that_comes(self, stage: Stage) -> None:
        before = submit(stage, name="before")
        operator = factories.user("oz")
        factories.member(operator, Role.OPERATOR)
        oz = actor_for(user=operator)
        made = standing.add(actor=oz, project=stage.project, gate=SOON, at=AT)
        work, array = submit(stage), sweep(stage)
        standing.remove(actor=oz, project=stage.project, name="paid", at=AT)
        after = submit(stage, name="after")
        assert [selectors.of_workload(each) for each in (before, after)] == [[], []]
        [gate], [whole] = selectors.of_workload(work), selectors.of_array(array)
        assert (gate.name, gate.kind, gate.standing) == (made.name, made.kind, True)
        assert gate.deadline_at == AT + timedelta(hours=1)
        assert (whole.workload_id, whole.array_id) == (None, array.id)
        audited = AuditEvent.objects.filter(action__startswith="project.gate").order_by("id")
        row = {"name": "paid", "kind": "budget", "owner": "ada", "within_s": 3600}
        assert [(each.action, each.before, each.after) for each in audited] == [
            ("project.gate-add", {}, row),
            ("project.gate-remove", row, {}),
        ]

    def test_what_runs_again_is_not_asked_for_again(self, stage: Stage, dan: Actor) -> None:
        work = submit(stage, DATA)
        decide(dan, work)
        stage.cycle()
        stage.dispatch()
        work.refresh_from_db()
        assert give_up(work)
        stage.release_claims()
        stage.dispatch(at=LATER)
        stage.relist()
        assert told(stage) == [None]
        Workload.objects.update(not_before=None)
        assert stage.cycle(at=LATER).admitted == {str(work.id)}

    def test_a_dry_run_says_which_gates_it_would_get(
        self, stage: Stage, dan: Actor, one_moment: None
    ) -> None:
        StandingGate.objects.create(
            project=stage.project, name="paid", kind="budget", owner=stage.ada, within_s=60,
            created_at=AT,
        )  # fmt: skip
        asked = replace(spec(stage.flavor.name), gates=(DATA,))
        found = explaining.dry_run(actor=stage.actor, project=stage.project, spec=asked, at=AT)
        assert found.gates == (GateSpec("paid", "budget", "ada", 60), DATA)
        assert found.start is None
        assert found.reason is not None
        assert dict(found.reason.numbers)["gate"] == "paid"
        assert found.forecast is not None
        assert found.forecast.p50_s is None
        assert Gate.objects.count() == 0


class TestRefused:
    def test_it_is_cancelled_with_the_gate_and_the_note(self, stage: Stage, dan: Actor) -> None:
        work = submit(stage, DATA, SOON)
        refuse(dan, work)
        assert end_of(work) == (
            "CANCELLED",
            "cancelled: its gate data was refused by dan: No licence.",
        )
        assert work.events.get(kind="gate").message == "gate data refused by dan: No licence."
        row = AuditEvent.objects.get(action="workload.gate")
        assert row.after == {"gate": "data", "state": "refused", "note": "No licence."}
        with pytest.raises(Conflict, match="train waits no more"):
            decide(stage.actor, work, "paid")

    def test_it_takes_a_note(self, stage: Stage, dan: Actor) -> None:
        work = submit(stage, DATA)
        with pytest.raises(Invalid, match="takes a note that says why"):
            refuse(dan, work, " ")
        assert end_of(work) == ("PENDING", "")

    def test_past_its_deadline_nobody_refused_it(self, stage: Stage) -> None:
        work = submit(stage, SOON)
        late = AT + timedelta(hours=1)
        assert loop.expire(at=late - timedelta(seconds=1)) == 0
        with pytest.raises(Conflict, match="had to be opened by 2026"):
            gates.decide(
                actor=stage.actor, work=work, name="paid", state=GateState.OPEN, note="", at=late
            )
        assert loop.expire(at=late) == 1
        assert end_of(work) == (
            "CANCELLED",
            "cancelled: its gate paid was refused: nobody opened it by its deadline",
        )
        [gate] = selectors.of_workload(work)
        assert (gate.state, gate.decided_by, gate.decided_at) == ("refused", None, late)
        assert loop.expire(at=late) == 0

    def test_a_deadline_says_nothing_of_work_that_was_cancelled_before(self, stage: Stage) -> None:
        work, late = submit(stage, SOON), AT + timedelta(days=1)
        assert due.now(at=late).expire
        stage.cancel(work)
        assert not due.now(at=late).expire
        assert loop.expire(at=late) == 0
        assert fleet.rows(waiting._GATES) == [], "each load would read it for ever"

    def test_an_array_is_decided_as_one(self, stage: Stage, dan: Actor) -> None:
        array = sweep(stage, DATA)
        one, two, three = array.elements.order_by("array_index")
        assert [view and view.name for view in told(stage)] == ["data"] * 3
        with pytest.raises(NotFound, match="decide those of its array"):
            decide(dan, one)
        stage.cancel(one)
        decide(dan, array)
        assert told(stage) == [None, None]
        assert [each.events.filter(kind="gate").count() for each in (one, two, three)] == [0, 1, 1]

    def test_a_refused_array_is_cancelled_whole(self, stage: Stage, dan: Actor) -> None:
        array = sweep(stage, DATA)
        refuse(dan, array)
        assert set(array.elements.values_list("state", flat=True)) == {"CANCELLED"}


class TestWhoDecides:
    def test_its_owner_and_who_administers_the_project_do(self, stage: Stage, dan: Actor) -> None:
        work, other = submit(stage, DATA), submit(stage, DATA, name="other")
        ben = factories.user("ben")
        factories.member(ben, Role.MEMBER, at=stage.project)
        with pytest.raises(NotAllowed, match="for dan to decide, or for who administers"):
            decide(actor_for(user=ben), work)
        [waiting] = [g.name for g in selectors.to_decide(actor=dan).filter(workload=work)]
        assert waiting == "data"
        assert not selectors.to_decide(actor=actor_for(user=ben)).exists()
        assert decide(dan, work).decided_by == dan.user
        assert decide(stage.actor, other).decided_by == stage.ada

    def test_nobody_approves_of_their_own_work(self, stage: Stage, dan: Actor) -> None:
        work = submit(stage, GateSpec("plan", "approval", "ada"))
        with pytest.raises(NotAllowed, match="somebody else has to approve of it"):
            decide(stage.actor, work, "plan")
        other = factories.user("olga")
        factories.member(other, Role.OWNER, at=stage.project)
        assert decide(actor_for(user=other), work, "plan").state == "open"

    def test_nor_of_a_service_accounts_by_whose_tokens_they_could_submit(
        self, stage: Stage, dan: Actor
    ) -> None:
        account = service_account(stage.project)
        work = submit(stage, GateSpec("plan", "approval", "dan"))
        Workload.objects.filter(id=work.id).update(submitted_by=account)
        work = Workload.objects.get(id=work.id)
        with pytest.raises(NotAllowed, match="somebody else has to approve of it"):
            decide(stage.actor, work, "plan")
        assert decide(dan, work, "plan").state == "open"

    def test_another_system_does_by_a_token_of_the_owner(self, stage: Stage, dan: Actor) -> None:
        work = submit(stage, DATA)
        reads, decides = (
            actor_for(user=dan.user, token=factories.token(dan.user, scope))
            for scope in (Scope.READ, Scope.GATE)
        )
        with pytest.raises(NotAllowed):
            decide(reads, work)
        assert decides.for_gates_only
        decide(decides, work)
        assert AuditEvent.objects.get(action="workload.gate").actor == decides.label

    def test_a_token_refuses_what_is_to_be_approved_and_never_opens_it(
        self, stage: Stage, dan: Actor
    ) -> None:
        token = factories.token(dan.user, *Scope)
        by_token = actor_for(user=dan.user, token=token)
        work, other = (submit(stage, GateSpec("plan", "approval", "dan")) for _ in range(2))
        with pytest.raises(NotAllowed, match="A token approves of nothing: sign in"):
            decide(by_token, work, "plan")
        assert work.gates.get().state == "waiting"
        assert decide(dan, work, "plan").state == "open"
        assert decide(by_token, other, "plan", GateState.REFUSED, "No.").state == "refused"

    def test_an_owner_without_a_role_any_more_does_not(self, stage: Stage, dan: Actor) -> None:
        work = submit(stage, DATA)
        dan.user.memberships.all().delete()
        with pytest.raises(NotFound):
            decide(actor_for(user=dan.user), work)

    def test_to_decide_again_the_same_changes_nothing(self, stage: Stage, dan: Actor) -> None:
        work = submit(stage, DATA)
        first = decide(dan, work, note="Copied.")
        again = decide(stage.actor, work, note="Twice.")
        assert (again.note, again.decided_by) == (first.note, dan.user)
        assert AuditEvent.objects.filter(action="workload.gate").count() == 1
        with pytest.raises(Conflict, match=r"is open since .* \(UTC\), by dan: Copied\."):
            refuse(dan, work)

    def test_a_gate_that_is_not_there_is_told_with_those_that_are(
        self, stage: Stage, dan: Actor
    ) -> None:
        with pytest.raises(NotFound, match="train has no gate dat; it has data"):
            decide(dan, submit(stage, DATA), "dat")


class TestDeclared:
    @pytest.mark.parametrize(
        ("asked", "pointer", "said"),
        [
            (GateSpec("data", "data", "nobody"), "/0/gates/0/owner", "nobody called 'nobody'"),
            (GateSpec("data", "data", "cleo"), "/0/gates/0/owner", "has a role in it"),
            (GateSpec("paid", "data", "dan"), "/0/gates/0/name", "gets a gate paid already"),
        ],
    )
    def test_what_there_can_not_be_is_refused(
        self, stage: Stage, dan: Actor, asked: GateSpec, pointer: str, said: str
    ) -> None:
        factories.user("cleo")
        StandingGate.objects.create(
            project=stage.project, name="paid", kind="budget", owner=stage.ada, created_at=AT
        )
        with pytest.raises(Invalid) as refused:
            submit(stage, asked)
        [found] = refused.value.problems
        assert found.pointer == pointer
        assert said in found.message
        assert not Workload.objects.exists()

    def test_a_name_that_the_project_took_meanwhile_is_told(
        self, stage: Stage, dan: Actor
    ) -> None:
        asked = replace(spec(stage.flavor.name), gates=(DATA,))
        checked = workloads.check(actor=stage.actor, project=stage.project, specs=[asked], at=AT)
        factories.standing_gate(stage.project, stage.ada, name="data")
        with pytest.raises(Conflict, match="Detection got a gate data meanwhile"):
            workloads.store(checked=checked, at=AT)
        assert not Workload.objects.exists()

    def test_a_project_has_one_of_a_name_and_no_more_than_ten(self, stage: Stage) -> None:
        operator = factories.user("oz")
        factories.member(operator, Role.OPERATOR)
        oz = actor_for(user=operator)

        def add(name: str, owner: str = "ada") -> None:
            gate = GateSpec(name, "other", owner)
            standing.add(actor=oz, project=stage.project, gate=gate, at=AT)

        for number in range(10):
            add(f"g{number}")
        with pytest.raises(Conflict, match="has a gate g0 already"):
            add("g0")
        with pytest.raises(Invalid, match="has 10 gates already"):
            add("one-more")
        with pytest.raises(Invalid, match="nobody called 'nobody'"):
            add("other", "nobody")
        with pytest.raises(NotFound, match="has no gate other"):
            standing.remove(actor=oz, project=stage.project, name="other", at=AT)
        with pytest.raises(NotAllowed):
            standing.add(actor=stage.actor, project=stage.project, gate=SOON, at=AT)
        assert StandingGate.objects.count() == 10
