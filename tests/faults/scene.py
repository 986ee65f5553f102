"""One cell: three workloads come to a phase of their life, something goes wrong there for one of
them, and all else goes on.

What must not live here: what goes wrong (rows.py).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from controlplane.kernel.clock import now
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.models import Placement, Workload
from scheduler.services import workloads
from tests.crash import verdict
from tests.faults import spoil as spoils
from tests.faults.proxy import Asked, Rule, Spoil
from tests.faults.stand import Stand
from tests.flows.world import spec

SHORT, LONG = ("sleep", "0"), ("sleep", "600")
WITHIN_S = 60.0
_LINES = (spoils.cut, spoils.half_open, spoils.expired)


class Phase(StrEnum):
    """Of a workload's life in its cluster, in order; the columns of the matrix."""

    CATCH = "catch"  # who owns what others made is asked
    PLAN = "plan"
    CONFINE = "confine"
    LABEL = "label"  # a caught pod gets a placement's labels
    CREATE = "create"
    STORE = "store"  # the pod is made, and its uid is not stored yet
    OPEN = "open"
    START = "start"  # the watch tells that it runs
    RELIST = "relist"
    DELETE = "delete"
    COLLECT = "collect"


class Kind(StrEnum):
    SINGLE = "single"
    GANG = "gang"
    SLICE = "slice"


@dataclass
class Scene:
    """`struck` is the workload for which it goes wrong: of a gang, its second pod."""

    stand: Stand
    phase: Phase
    struck: Kind
    works: dict[Kind, Workload] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    expected: State = State.SUCCEEDED
    apart: timedelta = timedelta(seconds=1)
    """How far the cluster's times, in whole seconds, may be from ours."""

    # --- until the phase ---

    def prepare(self) -> None:
        """All three are about to come to the phase."""
        stand = self.stand
        stand.pods_are_kept(for_s=0 if self.phase is Phase.COLLECT else 3600)
        if self.phase in (Phase.CATCH, Phase.LABEL):
            return
        if self.phase is Phase.CONFINE:
            stand.new_namespace()
        self._submit(LONG if self.phase is Phase.DELETE else SHORT)
        if self.phase is Phase.PLAN:
            return
        self.until("all are admitted", lambda: self._all_in(State.ADMITTED), stand.cycle)
        if self.phase is Phase.DELETE:
            self.until("all run", lambda: self._all_in(State.RUNNING))

    def begin(self) -> None:
        """What takes them into it."""
        if self.phase in (Phase.CATCH, Phase.LABEL):
            for kind in Kind:
                self.stand.make_job(self.job(kind), kind)
        if self.phase is Phase.DELETE:
            self.expected = State.CANCELLED
            for work in self.refreshed():
                workloads.cancel(actor=self.stand.ada, workload=work, at=now())

    def meanwhile(self, act: Callable[[], None]) -> None:
        """It happens while the request of the phase is under way; where there is none, now."""
        if self.phase is Phase.PLAN:
            act()
        else:
            stored = self.phase is Phase.STORE
            self.strike(spoils.before_the_answer(act) if stored else spoils.meanwhile(act))

    def until_met(self) -> None:
        self.until("it was met", lambda: all(rule.met for rule in self.rules))

    def strike(self, spoil: Spoil) -> None:
        """At the request, or the line of a watch, that is the phase for the struck one."""
        line = b""
        if self.phase is Phase.START and spoil in _LINES:
            line = f'"name":"{self.placement().pod_name}"'.encode()
        self.rules.append(self.stand.proxy.strike(spoil, where=self._where(), line=line))

    # --- after it ---

    def end_well(self) -> None:
        """Until all have ended as they should; then nothing may be wrong."""
        self.until("all have ended, and it was met", self.is_over)
        ends = [(work.name, work.state, _told(work)) for work in self.refreshed()]
        assert {state for _, state, _ in ends} == {self.expected}, ends
        self.until("nothing is left to do", self.stand.is_quiet)
        stand = self.stand
        faults = verdict.faults(
            told=stand.told,
            pods=stand.direct.list_pods().items,
            services=stand.services(),
            of=[work.id for work in self.works.values()],
            apart=self.apart,
        )
        assert faults == [], faults

    def refreshed(self) -> list[Workload]:
        return list(Workload.objects.filter(id__in=[each.id for each in self.works.values()]))

    def placement(self) -> Placement:
        """Of the struck pod, in the newest attempt."""
        found = Placement.objects.filter(workload=self.works[self.struck], rank=self._rank)
        return found.select_related("node", "attempt").latest("created_at")

    def job(self, kind: Kind) -> str:
        return f"{kind}-{self.serial}"

    @property
    def serial(self) -> int:
        return self.stand.serial

    @property
    def _rank(self) -> int:
        return 1 if self.struck is Kind.GANG else 0

    def _submit(self, command: tuple[str, ...]) -> None:
        made = self.stand.submit(
            spec("h100", gpus=2, command=command, name="single"),
            spec("h100", gpus=1, count=3, command=command, name="gang"),
            spec("a100.3g", command=command, name="slice"),
        )
        self.works = dict(zip(Kind, made, strict=True))

    def _where(self) -> Callable[[Asked], bool]:
        phase, namespace = self.phase, self.stand.vision.namespace
        space = f"/api/v1/namespaces/{namespace}"
        if phase in (Phase.START, Phase.RELIST):
            watched = phase is Phase.START
            return lambda asked: (
                asked.path.startswith("/api/v1/pods?") and (asked.watches is watched)
            )
        if phase is Phase.CONFINE:
            return lambda asked: asked.method == "PATCH" and asked.path.startswith(space)
        if phase is Phase.CATCH:
            owner = f"/jobs/{self.job(self.struck)}"
            return lambda asked: asked.path.endswith(owner)
        if phase is Phase.LABEL:
            made = f"{space}/pods/{self.job(self.struck)}-"
            return lambda asked: (
                asked.method == "PATCH"
                and asked.path.startswith(made)
                and b"schedulingGates" not in asked.body
            )
        name = self.placement().pod_name
        if phase in (Phase.CREATE, Phase.STORE):
            return lambda asked: (
                asked.method == "POST"
                and asked.path == f"{space}/pods"
                and f'"name":"{name}"'.encode() in asked.body
            )
        method = "PATCH" if phase is Phase.OPEN else "DELETE"
        return lambda asked: asked.method == method and asked.path == f"{space}/pods/{name}"

    def is_over(self) -> bool:
        if self.phase in (Phase.CATCH, Phase.LABEL):
            made = Workload.objects.filter(name__in=[self.job(kind) for kind in Kind])
            self.works = {Kind(work.name.partition("-")[0]): work for work in made}
        ended = len(self.works) == len(Kind) and all(
            work.state in TERMINAL for work in self.refreshed()
        )
        return ended and all(rule.met for rule in self.rules)

    def _all_in(self, state: State) -> bool:
        return all(work.state == state for work in self.refreshed())

    def until(
        self,
        what: str,
        reached: Callable[[], bool],
        turn: Callable[[], None] | None = None,
    ) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not self.stand.is_so(reached):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {WITHIN_S:g} s: {what}; {self._seen()}")
            (turn or self.stand.turn)()

    def _seen(self) -> str:
        states = [(work.name, work.state, work.reason, _told(work)) for work in self.refreshed()]
        met = [rule.met for rule in self.rules]
        return f"states {states}, met {met}, broke {self.stand.broke[-3:]}, {self.stand.amiss()}"


def _told(work: Workload) -> list[str]:
    """Its story, as its page has it."""
    return [f"{event.after} {event.message}" for event in work.events.order_by("id")]
