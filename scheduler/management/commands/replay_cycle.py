"""`manage.py replay_cycle`: plans a cycle of the past again, and says whether it comes out the
same."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.cli import explanation
from scheduler.core.explaining.explain import explain
from scheduler.core.plan import Plan
from scheduler.core.reasons import describe
from scheduler.core.wire import Unreadable
from scheduler.loop.recording import inputs
from scheduler.loop.recording.inputs import Inputs
from scheduler.web import explanations


class Command(BaseCommand):
    help = (
        "Plan a cycle again from what it was planned from; exit status 1 if this code plans"
        " otherwise, with what differs first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("cycle", nargs="?", type=UUID, help="the id of a cycle's record")
        source.add_argument("--file", type=Path, help="a file that --export wrote")
        parser.add_argument("--export", type=Path, help="write the inputs to this file")
        parser.add_argument("--json", type=Path, help="write the plan made now to this file")
        parser.add_argument(
            "--workload", metavar="ID", help="tell what it decides on this one, check by check"
        )

    def handle(
        self,
        *,
        cycle: UUID | None,
        file: Path | None,
        export: Path | None,
        json: Path | None,
        workload: str | None,
        **_: Any,  # Any: Django's options
    ) -> None:
        try:
            found = _read(file) if file else _kept(cycle)
            made = inputs.replayed(found)
            if export:
                export.write_bytes(inputs.written(found))
            if json:
                json.write_bytes(orjson.dumps(made, option=orjson.OPT_INDENT_2))
        except Unreadable as error:
            raise CommandError(f"Cannot be planned again. {error}") from error
        except OSError as error:
            raise CommandError(str(error)) from error
        if workload:
            told = [*_of(made, workload), *_checks(found, workload)]
            self.stdout.write("\n".join(told) or f"Nothing of {workload}.")
        self._compare(found, made)

    def _compare(self, found: Inputs, made: Plan) -> None:
        if found.code != inputs.code():
            self.stderr.write(f"Planned by other code: {found.code} then, {inputs.code()} now.")
        differences = inputs.differences(found, made)
        for difference in differences:
            self.stderr.write(difference)
        if differences:
            sys.exit(1)
        self.stdout.write(
            f"The same plan: {len(made.admits)} start, {len(made.preempts)} are evicted,"
            f" {len(made.reasons())} are held; faults: {len(made.faults)}."
        )


def _read(file: Path) -> Inputs:
    return inputs.parsed(file.read_bytes())


def _kept(cycle: UUID | None) -> Inputs:
    found = inputs.kept(cycle) if cycle else None
    if found is None:
        raise CommandError(
            f"Nothing is kept of what cycle {cycle} was planned from. Kept are cycles that started"
            " or evicted something, or told who waits another kind of reason, for"
            f" {inputs.KEPT_DAYS} days at most, as BERTH_INPUTS_MIB, BERTH_INPUTS_S and"
            " BERTH_INPUTS_HOLDS_S allow."
        )
    return found


def _of(made: Plan, workload: str) -> Iterator[str]:
    for admit in made.admits:
        if admit.workload == workload:
            yield f"It starts in cluster {admit.cluster}."
            for place in admit.places:
                on = ", ".join(f"{d} [{s.start}, {s.end})" for d, s in place.spans)
                yield f"  rank {place.rank}: node {place.node} {on}".rstrip()
    for preempt in made.preempts:
        if preempt.victim == workload:
            whom = preempt.preemptor or "nobody"
            yield f"It is evicted for {whom}, by the rule {preempt.rule}."
        if preempt.preemptor == workload:
            yield f"{preempt.victim} is evicted for it, by the rule {preempt.rule}."
    for hold in made.holds:
        if workload in hold.workloads:
            yield f"It is held: {describe(hold.reason)}"


def _checks(found: Inputs, workload: str) -> Iterator[str]:
    """What this code asks of it, if it waited, in the order it asks."""
    pending = next((one for one in found.snapshot.pending if one.id == workload), None)
    if pending is None:
        return
    told = explain(
        snapshot=found.snapshot, policy=found.policy, pending=pending, late=lambda: True
    )
    for check in told.checks:
        yield explanation.line(explanations.check(check))
    for chain in told.chains:
        yield explanation.heading(chain.flavors)
        for check in chain.checks:
            yield explanation.line(explanations.check(check))
