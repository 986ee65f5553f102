"""What each mode would cost, as the API gives it, and in words as the submit page shows it."""

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any, NamedTuple

from rest_framework import serializers

from scheduler.services.comparing import Compared, Comparison
from scheduler.services.modes import Mode
from scheduler.web import explanations
from scheduler.web.explanations import StartOut
from scheduler.web.outputs import EstimateOut, ReasonOut

type Out = dict[str, Any]  # Any: JSON values, datetime, Decimal

TITLES: Mapping[Mode, str] = {
    Mode.PREEMPTIBLE: "Preemptible",
    Mode.ELASTIC: "Elastic",
    Mode.SEMI: "Semi-preemptible",
    Mode.FIRM: "Not preemptible",
}
MEANS: Mapping[Mode, str] = {
    Mode.PREEMPTIBLE: "May borrow. Stopped as one where others need the room, and started again"
    " later.",
    Mode.ELASTIC: "May borrow. Starts with its least and grows where there is room; gives that up"
    " again first, then all of it.",
    Mode.SEMI: "Keeps its least, and does not borrow. What it has beyond comes and goes.",
    Mode.FIRM: "Keeps all that it has, and does not borrow.",
}
MODES = [mode.value for mode in Mode]
LOSES: Mapping[Mode, str] = {
    Mode.PREEMPTIBLE: "All work since its last checkpoint.",
    Mode.ELASTIC: "What pods beyond its least were at; then all work since its last checkpoint.",
    Mode.SEMI: "What pods beyond its least were at.",
    Mode.FIRM: "Nothing.",
}
"""To the work of others. What nodes and clusters lose, and the work's own faults, is apart."""


class GuaranteedOut(serializers.Serializer[Any]):  # Any: plain rows
    flavor = serializers.CharField()
    asked_milli = serializers.IntegerField(help_text="Thousandths that it starts with.")
    left_milli = serializers.IntegerField(
        help_text="What of the guaranteed is left for it now; negative where more is used."
    )


class ModeOut(serializers.Serializer[Any]):  # Any: plain rows
    mode = serializers.ChoiceField(choices=MODES)
    refused = serializers.CharField(
        allow_null=True, help_text="Why it could never start so; null where it could."
    )
    start = StartOut(allow_null=True)
    reason = ReasonOut(allow_null=True)
    estimate = EstimateOut(allow_null=True, help_text="Of what would wait.")
    least_per_hour = serializers.DecimalField(
        max_digits=20, decimal_places=6, allow_null=True, help_text="What it starts with."
    )
    most_per_hour = serializers.DecimalField(
        max_digits=20, decimal_places=6, allow_null=True, help_text="All its pods."
    )
    needs = GuaranteedOut(
        many=True, help_text="What has to be guaranteed; empty where it may borrow."
    )
    means = serializers.CharField()
    loses = serializers.CharField(help_text="What the work of others may cost it.")


class EvictedOut(serializers.Serializer[Any]):  # Any: plain rows
    """What evictions cost the project: those that lost work, and how much."""

    since = serializers.DateTimeField()
    count = serializers.IntegerField()
    lost_milli_s = serializers.IntegerField(help_text="Thousandths of devices x seconds.")


class ModesOut(serializers.Serializer[Any]):  # Any: plain rows
    as_of = serializers.DateTimeField()
    asked = serializers.ChoiceField(choices=[mode.value for mode in Mode])
    modes = ModeOut(many=True, help_text="With a `min_count` below `count` all four, else two.")
    min_run_time_s = serializers.IntegerField(help_text="Before that it is evicted in none.")
    evicted = EvictedOut()


def comparison(found: Comparison) -> Out:
    past = {"count": found.past.count, "lost_milli_s": found.past.lost_milli_s}
    return {
        "as_of": found.as_of,
        "asked": found.asked.value,
        "modes": [_mode(one, found) for one in found.modes],
        "min_run_time_s": found.min_run_time_s,
        "evicted": {"since": found.since, **past},
    }


def _mode(one: Compared, found: Comparison) -> Out:
    return {
        "mode": one.mode.value,
        "refused": one.refused or None,
        "start": None if one.start is None else asdict(one.start),
        "reason": None if one.reason is None else explanations.reason(one.reason),
        "estimate": explanations.estimate(one.forecast, as_of=found.as_of),
        "least_per_hour": _amount(one.least_per_hour),
        "most_per_hour": _amount(one.most_per_hour),
        "needs": [asdict(need) for need in one.needs],
        "means": MEANS[one.mode],
        "loses": LOSES[one.mode],
    }


def _amount(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:.6f}"


class Row(NamedTuple):
    """A mode on the submit page; `found` None while it was not compared, or can't be asked for."""

    mode: Mode
    title: str
    means: str
    loses: str
    found: Compared | None


def rows(found: Comparison | None) -> list[Row]:
    """Each mode, with what was found of it."""
    by_mode = {one.mode: one for one in found.modes} if found else {}
    return [Row(mode, TITLES[mode], MEANS[mode], LOSES[mode], by_mode.get(mode)) for mode in Mode]
