"""One scenario: a picture of a fleet, and all that a plan of it decides.

A scenario tells the whole plan: who starts, in which order, who is evicted for whom by which rule,
and why everybody else waits. What it leaves out must not happen.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from scheduler.core.cycle import plan
from scheduler.core.laws.invariants import violations
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode
from scheduler.core.simulating.carried import resized
from scheduler.core.snapshot import HoldingView, NodeView, PendingView, Snapshot
from tests.core.build import Outcome, Quota, holds, job, node, runs
from tests.core.drawn.fleets import shuffled
from tests.core.held.elastic import grows, shrinks
from tests.core.sweep.test_sweep import agree

FREE = Quota(0, borrow=None)
"""No nominal quota, and any amount of what others lend."""
MOST_CYCLES = 12


@dataclass(frozen=True)
class Scenario:
    """`name` is a sentence; `source` is where a peer documents the behaviour.

    Names of workloads, nodes, flavors stand in one string, separated by blanks. `starts` are those
    admitted, in that order, `frees` those whose devices lie idle, ascending. `preempts`,
    `reclaims` and `moves` have the victims of each preemptor, which then waits, `gives` those who
    go for a quota that is enforced, `stops` those that a budget stops, `better` those that move to
    better flavors, `shrinks` the pods ("e-3" is number 3 of e); `grows` has the nodes of the pods
    that come, `waits` all others that wait. Of `on`, `pods`, `flavors`, `spans` and `numbers` only
    what is given is compared; `numbers` may be a part of a reason's.

    With `ends`, plans follow each other, victims ask again as `again` says, and those hold in the
    end, ascending.
    """

    name: str
    source: str
    given: Snapshot
    starts: str = ""
    frees: str = ""
    preempts: Mapping[str, str] = field(default_factory=dict)
    reclaims: Mapping[str, str] = field(default_factory=dict)
    moves: Mapping[str, str] = field(default_factory=dict)
    better: str = ""
    gives: str = ""
    stops: str = ""
    shrinks: Mapping[str, str] = field(default_factory=dict)
    grows: Mapping[str, str] = field(default_factory=dict)
    waits: Mapping[str, ReasonCode] = field(default_factory=dict)
    numbers: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    on: Mapping[str, str] = field(default_factory=dict)
    pods: Mapping[str, int] = field(default_factory=dict)
    flavors: Mapping[str, str] = field(default_factory=dict)
    spans: Mapping[str, list[tuple[str, int, int]]] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    again: tuple[PendingView, ...] = ()
    ends: str | None = None

    def __str__(self) -> str:
        return self.name


def check(case: Scenario) -> None:
    """The plan is as the scenario tells, lawful, the same with the sweep as without, and whatever
    the order of the input."""
    made = Outcome(agree(case.given, case.policy))
    assert violations(case.given, made.plan) == ()
    assert plan(shuffled(case.given, 7), case.policy) == made.plan
    assert " ".join(made.started()) == case.starts
    assert " ".join(made.plan.frees) == case.frees
    evicts = {"priority": case.preempts, "reclaim": case.reclaims, "consolidate": case.moves}
    victims = [each for rule, of in evicts.items() for each in _of(rule, of)]
    victims += ((id, id, "better") for id in case.better.split())
    victims += _of("quota", {"": case.gives})
    victims += _of("budget", {"": case.stops})
    assert made.victims() == sorted(victims)
    asked = ((pod, by) for by, of in case.shrinks.items() for pod in of.split())
    assert [(pod, by) for pod, by, _ in shrinks(made.plan)] == sorted(asked)
    assert grows(made.plan) == case.grows
    preemptors = {by for of in (*evicts.values(), case.shrinks) for by in of}
    waiting = dict.fromkeys(preemptors, ReasonCode.WAITING_FOR_PREEMPTION)
    assert {id: hold.reason.code for id, hold in made.holds.items()} == waiting | dict(case.waits)
    for id, numbers in case.numbers.items():
        assert numbers.items() <= made.numbers(id).items()
    assert {id: " ".join(made.nodes(id)) for id in case.on} == case.on
    assert {id: len(made.places(id)) for id in case.pods} == case.pods
    given = {id: {place.flavor for place in made.places(id)} for id in case.flavors}
    assert {id: " ".join(sorted(flavors)) for id, flavors in given.items()} == case.flavors
    assert {id: made.spans(id) for id in case.spans} == case.spans
    if case.ends is not None:
        assert " ".join(_at_rest(case)) == case.ends


def _of(rule: str, evicts: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for preemptor, victims in evicts.items():
        yield from ((victim, preemptor, rule) for victim in victims.split())


def _at_rest(case: Scenario) -> list[str]:
    """Who holds when plan after plan, each seen through, no longer changes anything."""
    of, again = case.given, {waiting.id: waiting for waiting in case.again}
    for _ in range(MOST_CYCLES):
        made = agree(of, case.policy)
        assert violations(of, made) == ()
        gone = {preempt.victim for preempt in made.preempts}
        leaving = {held.id for held in of.holding if held.releasing}
        if not (made.admits or gone or leaving or made.shrinks or made.grows):
            return sorted(held.id for held in of.holding)
        pending = {waiting.id: waiting for waiting in of.pending}
        started = [holds(admit, pending[admit.workload]) for admit in made.admits]
        stays = [resized(h, made) for h in of.holding if h.id not in gone | leaving]
        for id in gone:
            pending[id] = again[id]
        for admit in made.admits:
            del pending[admit.workload]
        of = replace(of, holding=(*stays, *started), pending=tuple(pending.values()))
    raise AssertionError("plan after plan it does not come to rest")


def nodes(*gpus: int) -> list[NodeView]:
    """n1, n2, … with so many H100s each."""
    return [node(f"n{i}", gpus=count) for i, count in enumerate(gpus, 1)]


def gpus(on: str, first: int, beyond: int) -> list[str]:
    """Of a node, the devices from one number to before another."""
    return [f"{on}/{i}" for i in range(first, beyond)]


def singles(
    names: str, project: str, where: Iterable[str], *, priority: int = 0
) -> list[HoldingView]:
    """One workload a device, each running a second longer than the one before."""
    named = zip(names.split(), where, strict=True)
    return [
        runs(name, project, device, priority=priority, since_s=100 + i)
        for i, (name, device) in enumerate(named)
    ]


def line(project: str, count: int, *, since: int = 0) -> list[PendingView]:
    """a0, a1, … of one device each, one after the other."""
    return [job(f"{project}{i}", project, submitted_at=since + i) for i in range(count)]
