"""Attacks on arrays, their elements, and on what waits for what."""

from scheduler.models import Dependency, Workload, WorkloadArray
from tenants.models import Project
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import Move, Statement, change, insert_like, update
from tests.constraints.rows import make
from tests.factories import AT


def _element(**columns: object) -> Move:
    """UPDATE of the first of an array's two elements."""

    def prepare() -> Statement:
        array = make(WorkloadArray, size=2)
        row = make(Workload, project=array.project, array=array, array_index=0)
        return update(row, **columns)

    return prepare


def _second_of_one_index() -> Statement:
    array = make(WorkloadArray, size=2)
    return insert_like(make(Workload, project=array.project, array=array, array_index=1))


def _dependency(**columns: object) -> Move:
    """UPDATE of a workload's wait for an earlier one."""

    def prepare() -> Statement:
        earlier, later = make(Workload), make(Workload)
        return update(make(Dependency, workload=later, on_workload=earlier), **columns)

    return prepare


def _backwards(*, itself: bool) -> Move:
    def prepare() -> Statement:
        earlier, later = make(Workload), make(Workload)
        row = make(Dependency, workload=later, on_workload=earlier)
        return update(row, on_workload_id=later.pk if itself else make(Workload).pk)

    return prepare


def _twice() -> Statement:
    earlier, later = make(Workload), make(Workload)
    return insert_like(make(Dependency, workload=later, on_workload=earlier))


ATTACKS = (
    Attack("array_size_in_range", "an array is empty", change(WorkloadArray, size=0),
           behind=("array_stays",)),
    Attack("array_size_in_range", "an array has no end", change(WorkloadArray, size=10_001),
           behind=("array_stays",)),
    negative("scheduler_workloadarray_size_check", WorkloadArray, "size",
             "array_size_in_range", "array_stays"),
    Attack("array_most_in_range", "none may run", change(WorkloadArray, most_at_once=0)),
    Attack("array_most_in_range", "more may run than there are",
           change(WorkloadArray, {"size": 2}, most_at_once=3)),
    negative("scheduler_workloadarray_most_at_once_check", WorkloadArray, "most_at_once",
             "array_most_in_range"),
    Attack("array_stays", "an array shrinks", change(WorkloadArray, {"size": 2}, size=1)),
    Attack("array_stays", "an array goes to another project",
           change(WorkloadArray, project_id=lambda: make(Project).pk)),
    Attack("array_element_once", "two elements are the second", _second_of_one_index),
    Attack("array_element_numbered", "an element has no number", _element(array_index=None),
           behind=("element_fits",)),
    Attack("array_element_numbered", "a number is of no array", change(Workload, array_index=1)),
    negative("scheduler_workload_array_index_check", Workload, "array_index",
             "array_element_numbered"),
    Attack("element_fits", "an array has more elements than its size", _element(array_index=2)),
    Attack("element_fits", "an element is in another project than its array",
           _element(project_id=lambda: make(Project).pk)),
    Attack("dependency_kind_known", "it waits for dinner", _dependency(kind="after-dinner")),
    Attack("dependency_on_unmet_known", "it goes home", _dependency(on_unmet="leave")),
    Attack("dependency_unmet_holds", "it is held that was to be cancelled",
           _dependency(unmet_at=AT)),
    Attack("dependency_of_one", "nobody waits", _dependency(workload_id=None)),
    Attack("dependency_of_one", "two wait in one", _dependency(
        array_id=lambda: make(WorkloadArray).pk)),
    Attack("dependency_on_one", "it waits for nothing", _dependency(on_workload_id=None)),
    Attack("dependency_on_one", "it waits for two in one", _dependency(
        on_array_id=lambda: make(WorkloadArray).pk)),
    Attack("dependency_on_the_earlier", "it waits for a later one", _backwards(itself=False)),
    Attack("dependency_on_the_earlier", "it waits for itself", _backwards(itself=True)),
    Attack("dependency_once", "it waits twice for the same", _twice),
)  # fmt: skip
