"""What a plan starts, asked for by project while it is still starting more."""

from scheduler.core.admitting.begun import Begun
from scheduler.core.plan import Admit
from scheduler.core.units import ClusterId, ProjectId
from tests.core.build import job


def test_what_starts_between_two_questions_is_told_once() -> None:
    begun = Begun(most=9, evictions=None)

    def start(name: str, project: str) -> None:
        pending = job(name, project)
        begun.add(pending, Admit(pending.id, ClusterId("c"), ()))

    def of(project: str) -> list[str]:
        return [pending.id for pending, _ in begun.of(ProjectId(project))]

    start("a1", "a")
    start("b1", "b")
    assert of("a") == ["a1"]
    assert of("c") == []
    start("b2", "b")
    start("a2", "a")
    assert of("a") == of("a") == ["a1", "a2"]
    assert of("b") == ["b1", "b2"]
