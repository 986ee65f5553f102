"""Pods that come and go, in a few words."""

from scheduler.core.plan import Plan


def shrinks(made: Plan) -> list[tuple[str, str, str]]:
    """(pod, preemptor, rule)"""
    return sorted((pod, s.preemptor, s.rule.value) for s in made.shrinks for pod in s.placements)


def grows(made: Plan) -> dict[str, str]:
    """The nodes of the pods that each gets."""
    return {g.workload: " ".join(place.node for place in g.places) for g in made.grows}
