"""Pods that come and go, in a few words."""

from dataclasses import replace

from scheduler.core.plan import Plan
from scheduler.core.snapshot import HoldingView
from tests.core.build import held_at


def resized(held: HoldingView, made: Plan) -> HoldingView:
    """It once the pods that the plan takes from it have gone, and those that it gets run."""
    gone = {pod for s in made.shrinks if s.victim == held.id for pod in s.placements}
    placements = [p for p in held.placements if p.id not in gone]
    for place in (p for g in made.grows if g.workload == held.id for p in g.places):
        rank = 1 + max(placement.rank for placement in placements)
        placements.append(held_at(place, rank, f"{held.id}-{rank}"))
    return replace(held, placements=tuple(placements))


def shrinks(made: Plan) -> list[tuple[str, str, str]]:
    """(pod, preemptor, rule)"""
    return sorted((pod, s.preemptor, s.rule.value) for s in made.shrinks for pod in s.placements)


def grows(made: Plan) -> dict[str, str]:
    """The nodes of the pods that each gets."""
    return {g.workload: " ".join(place.node for place in g.places) for g in made.grows}
