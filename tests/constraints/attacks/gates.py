"""Attacks on gates, those of projects and those of work, and past one that is not open."""

from scheduler.models import (
    Attempt,
    Gate,
    GateState,
    Placement,
    PodSet,
    PodSetFlavor,
    Workload,
    WorkloadArray,
)
from tenants.models import Project, StandingGate
from tests.constraints.attack import Attack
from tests.constraints.moves import Move, Sql, Statement, change, copy, insert_like, update
from tests.constraints.rows import NOON, make

OPEN = {"state": "open", "decided_at": NOON}


def _of_workload(**given: object) -> Gate:
    work = make(Workload)
    return make(Gate, workload=work, project=work.project, name="data", **given)


def _gate(**columns: object) -> Move:
    """UPDATE of a workload's gate that waits."""
    return lambda: update(_of_workload(), **columns)


def _decided(**columns: object) -> Move:
    """The same of one that is open."""

    def prepare() -> Statement:
        row = _of_workload()
        Gate.objects.filter(id=row.id).update(**OPEN, decided_by=row.owner)
        return update(row, **columns)

    return prepare


def _taken_away() -> Statement:
    return "DELETE FROM scheduler_gate WHERE id = %s", [_of_workload().pk]


def _emptied() -> Statement:
    _of_workload()
    return "TRUNCATE scheduler_gate CASCADE", []


def _second(*, of_array: bool) -> Move:
    """INSERT of a second gate of one name."""

    def prepare() -> Statement:
        if not of_array:
            return insert_like(_of_workload())
        array = make(WorkloadArray)
        return insert_like(make(Gate, array=array, project=array.project, name="data"))

    return prepare


def _of_two() -> Statement:
    row = _of_workload()
    array = make(WorkloadArray, project=row.project)
    return insert_like(row, array_id=array.pk, name="other")


def _elsewhere() -> Statement:
    return insert_like(_of_workload(), name="other", project_id=make(Project).pk)


def _after_the_fact() -> Statement:
    row, placed = _of_workload(), make(Placement).workload
    return insert_like(row, workload_id=placed.pk, project_id=placed.project_id)


def _placed(*, state: str, of_array: bool = False) -> Move:
    """INSERT of the first pod of work whose gate is in that state."""

    def prepare() -> Statement:
        pod = make(Placement)
        array = make(WorkloadArray, project=pod.workload.project) if of_array else None
        index = None if array is None else 0
        work = make(Workload, project=pod.workload.project, array=array, array_index=index)
        of = {"workload": work} if array is None else {"array": array}
        gate = make(Gate, **of, project=work.project, name="data")
        if state == GateState.REFUSED:
            Gate.objects.filter(id=gate.id).update(
                state=state, decided_at=NOON, decided_by=gate.owner, note="No."
            )
        pod_set = make(PodSet, workload=work)
        make(PodSetFlavor, pod_set=pod_set, flavor=pod.flavor)
        attempt = make(Attempt, workload=work, cluster=pod.attempt.cluster)
        return insert_like(
            pod,
            workload_id=work.pk,
            attempt_id=attempt.pk,
            pod_set_id=pod_set.pk,
            pod_name="the-first",
        )

    return prepare


ATTACKS = (
    Attack("standing_gate_once", "a project has two of a name", copy(StandingGate, {"name": "a"})),
    Attack("standing_gate_named_plainly", "a gate has a name with blanks",
           change(StandingGate, {"name": "a"}, name="a b")),
    Attack("standing_gate_kind_known", "a gate is for dinner",
           change(StandingGate, {"name": "a"}, kind="dinner")),
    Attack("standing_gate_within_range", "it is refused before it is asked for",
           change(StandingGate, {"name": "a"}, within_s=0)),
    Attack("gate_of_one", "a gate is of two", _of_two),
    Attack("gate_of_one", "a gate is of nothing", _gate(workload_id=None),
           behind=("gate_stays",)),
    Attack("gate_once_a_workload", "a workload has two of a name", _second(of_array=False)),
    Attack("gate_once_an_array", "an array has two of a name", _second(of_array=True)),
    Attack("gate_named_plainly", "a gate has a name with blanks", _gate(name="a b"),
           behind=("gate_stays",)),
    Attack("gate_kind_known", "a gate is for dinner", _gate(kind="dinner"),
           behind=("gate_stays",)),
    Attack("gate_deadline_later", "it ends before it begins", _gate(
        deadline_at=Sql("created_at")), behind=("gate_stays",)),
    Attack("gate_decided_by_someone", "a gate is ajar", _gate(state="ajar")),
    Attack("gate_decided_by_someone", "nobody opened it", _gate(**OPEN)),
    Attack("gate_decided_by_someone", "it is refused without a word", _gate(
        state="refused", decided_at=NOON, decided_by_id=Sql("owner_id"))),
    Attack("gate_decided_by_someone", "it waits, and was decided", _gate(decided_at=NOON)),
    Attack("gate_refused_by_its_deadline", "nobody refused it, without a deadline", _gate(
        state="refused", decided_at=NOON, note="No.")),
    Attack("gate_decided_once", "what was opened waits again", _decided(
        state="waiting", decided_at=None, decided_by_id=None)),
    Attack("gate_kept", "a gate is taken away", _taken_away),
    Attack("gate_never_emptied", "no gate is shut", _emptied),
    Attack("gate_stays", "a gate gets more time", _gate(deadline_at=Sql("created_at + '1 h'"))),
    Attack("gate_stays", "a gate goes to another workload", _gate(
        workload_id=lambda: make(Workload).pk)),
    Attack("gate_fits", "a gate is of another project than its work", _elsewhere),
    Attack("gate_fits", "a gate comes when all is placed", _after_the_fact),
    Attack("placement_gates_open", "it starts behind a gate", _placed(state="waiting")),
    Attack("placement_gates_open", "it starts though it was refused", _placed(state="refused")),
    Attack("placement_gates_open", "an element starts behind its array's gate", _placed(
        state="waiting", of_array=True)),
)  # fmt: skip
