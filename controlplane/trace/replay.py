"""The steps of a replay beside a running installation: wait for the nodes, submit, wait for the
end, check, report.

What must not live here: starting Berth (run.py), what is counted (facts.py, report.py).
"""

import json
import os
import time
from pathlib import Path

from clusters import registry
from controlplane.kernel.clock import now
from controlplane.trace import checks, facts, usage
from controlplane.trace.client import Client
from controlplane.trace.fleet import CLUSTER, Choice, Fleet
from controlplane.trace.killing import Killer
from controlplane.trace.plan import Plan
from controlplane.trace.report import Report, compare, gather
from controlplane.trace.submission import batches, body
from controlplane.trace.table import table

LOOK_S = 0.25
TELL_S = 5.0
_NODES_WITHIN_S = 120.0
_STUCK_S = 300.0


class Stuck(Exception):
    """Nothing has moved for minutes; the message says where it stands."""


class Replay:
    """One replay, from idle to idle."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.nodes = plan.read_nodes()
        self.pods = plan.read_pods()
        self._services = dict(plan.services)
        self._killer = Killer(kills=plan.kills, seed=plan.seed, families=self._families)
        self._told_at = 0.0

    def run(self) -> int:
        """0 when every check held."""
        self._await_nodes()
        before = usage.measure(self._families())
        began = time.monotonic()
        self._submit()
        submitted_s = time.monotonic() - began
        self._await_end()
        after = usage.measure(self._families())
        reports = registry.connect(CLUSTER).list_pods().items
        problems = checks.problems(
            nodes=self.nodes, pods=self.pods, reports=reports, runs_s=self.plan.runs_s
        )
        report = gather(
            plan=self.plan,
            gpus=sum(node.gpus for node in self.nodes),
            submit_s=submitted_s,
            usages=(before, after),
            kills=self._killer.done,
            problems=problems,
        )
        print(table(report))
        return self._conclude(report)

    def _conclude(self, report: Report) -> int:
        if self.plan.report:
            Path(self.plan.report).write_text(json.dumps(report, indent=1) + "\n")
        differences: list[str] = []
        if self.plan.reference:
            reference: Report = json.loads(Path(self.plan.reference).read_text())
            text, differences = compare(report, reference)
            print(text)
        for problem in report["problems"]:
            print(f"WRONG: {problem}")
        return 1 if report["problems"] or differences else 0

    def _families(self) -> dict[str, list[int]]:
        return usage.families(os.getppid(), self._services)

    def _await_nodes(self) -> None:
        wanted = sum(node.gpus for node in self.nodes)
        deadline = time.monotonic() + _NODES_WITHIN_S
        while (seen := facts.devices()) < wanted:
            if time.monotonic() > deadline:
                raise Stuck(f"Only {seen} of {wanted} GPUs have been reported.")
            time.sleep(LOOK_S)
        print(f"{len(self.nodes)} nodes with {wanted} GPUs are known to Berth")

    def _submit(self) -> None:
        client = Client(self.plan.url, json.loads(Path(self.plan.tokens).read_text()))
        choice = Choice(Fleet(self.nodes))
        for qos, pods in batches(self.pods):
            client.submit(qos, [body(pod, choice, runs_s=self.plan.runs_s) for pod in pods])
            self._look()

    def _look(self) -> dict[str, int]:
        """Read how far it is; tell now and then, kill when it is time to."""
        counted = facts.states()
        part = facts.bound(counted) / len(self.pods)
        if killed := self._killer.look(part):
            print(f"killed a {killed} at {part:.0%} bound")
        if time.monotonic() - self._told_at > TELL_S:
            self._told_at = time.monotonic()
            print(_standing(counted))
        return counted

    def _await_end(self) -> None:
        last: dict[str, int] = {}
        moved_at = time.monotonic()
        while facts.unfinished(counted := self._look()):
            if counted != last:
                last, moved_at = counted, time.monotonic()
            if time.monotonic() - moved_at > _STUCK_S and not self._is_running_only(counted):
                raise Stuck(f"Nothing has moved for {_STUCK_S:.0f} s: {_standing(counted)}.")
            time.sleep(LOOK_S)
        print(f"all over at {now():%Y-%m-%d %H:%M} of the trace's clock")

    def _is_running_only(self, counted: dict[str, int]) -> bool:
        """Long runs are no standstill."""
        return facts.unfinished(counted) == counted.get("RUNNING", 0)


def _standing(counted: dict[str, int]) -> str:
    order = ("PENDING", "ADMITTED", "BOUND", "RUNNING", "SUCCEEDED")
    known = [f"{counted[state]} {state.lower()}" for state in order if counted.get(state)]
    rest = [f"{n} {state.lower()}" for state, n in counted.items() if state not in order]
    return ", ".join([*known, *rest]) or "nothing submitted"
