"""An explanation as the API gives it, and in words as the pages show it."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rest_framework import serializers

from scheduler.core import reasons
from scheduler.core.explaining import change
from scheduler.core.explaining.change import Change, Relaxation, Unit
from scheduler.core.explaining.checks import Chain, Check, CheckCode
from scheduler.core.reasons import Reason
from scheduler.core.simulating.estimate import Forecast
from scheduler.services.explaining import Explained
from scheduler.web.details import ChoiceOut
from scheduler.web.outputs import DecidedOut, EstimateOut, ReasonOut
from tenants.gating import KINDS

type Out = dict[str, Any]  # Any: JSON values, datetime

CHECK_CODES = [code.value for code in CheckCode]
CHECK_STATES = ["passed", "failed", "not-reached"]
CHANGES = [kind.value for kind in Change]
UNITS = [unit.value for unit in Unit]

_TITLES: Mapping[CheckCode, str] = {
    CheckCode.SOUND: "What is stored of it is in order",
    CheckCode.ADMITTING: "New work is let in",
    CheckCode.QUEUE: "Its project is open, and all tenants above it",
    CheckCode.GATES: "All its gates are open",
    CheckCode.DEPENDENCIES: "What it was told to wait for has ended",
    CheckCode.STRAYS: "No pod of it runs that the database does not know",
    CheckCode.PODS: "Its pods, which are made in its cluster, are there",
    CheckCode.RETRY: "It may be tried again",
    CheckCode.TURN: "Its turn came",
    CheckCode.CAPS: "Its project, its submitter and its array may run one more",
    CheckCode.RESERVATIONS: "It runs into no reservation",
    CheckCode.PROMISES: "Nothing is being freed or kept for it that it has to wait for",
    CheckCode.ISOLATION: "It isolates as much as is accepted",
    CheckCode.BUDGET: "GPU-hours left in the budgets over it",
    CheckCode.OWN_QUOTA: "Quota of the project, with what it may borrow",
    CheckCode.TENANT_QUOTA: "Quota of {where}",
    CheckCode.FLEET_QUOTA: "What all tenants lend together",
    CheckCode.FIRM: "What may not be preempted takes no more than is guaranteed",
    CheckCode.CLUSTERS: "An accepted cluster takes new work",
    CheckCode.HARDWARE: "The hardware could hold it, if it were empty",
    CheckCode.HELD: "It does not lack clusters and pools that are held",
    CheckCode.NODES: "It does not lack nodes that can come",
    CheckCode.OUTAGES: "What it needs is in service",
    CheckCode.FREE: "Enough is free in one cluster",
    CheckCode.DOMAIN: "What has to be together fits in one {where}",
    CheckCode.CORES: "Cores beside the devices",
    CheckCode.MEMORY: "Memory beside the devices",
    CheckCode.FIT: "What is free lies where its pods fit",
    CheckCode.KEPT: "It is not kept for who comes first and has waited long",
    CheckCode.EVICTION: "Stopping others makes room for it",
}


class CheckOut(serializers.Serializer[Any]):  # Any: plain rows
    """One thing that the plan asks. It passes where `value` is at most `limit`."""

    code = serializers.ChoiceField(choices=CHECK_CODES)
    state = serializers.ChoiceField(choices=CHECK_STATES)
    value = serializers.IntegerField(allow_null=True)
    limit = serializers.IntegerField(allow_null=True, help_text="Null beside a value: none.")
    unit = serializers.ChoiceField(choices=UNITS, allow_blank=True)
    flavor = serializers.CharField(allow_blank=True)
    where = serializers.CharField(
        allow_blank=True, help_text="A tenant above the project, or a level of the topology."
    )
    text = serializers.CharField()


class OptionOut(serializers.Serializer[Any]):  # Any: plain rows
    """One accepted flavor for each pod set."""

    flavors = serializers.ListField(child=serializers.CharField())
    told = serializers.BooleanField(help_text="Whether the reason, or the start, is about this.")
    checks = CheckOut(many=True)


class RelaxationOut(serializers.Serializer[Any]):  # Any: plain rows
    """A change with which it would start, each tried by a plan of its own."""

    change = serializers.ChoiceField(choices=CHANGES)
    old = serializers.JSONField(allow_null=True, help_text="A number in `unit`, or a name.")
    new = serializers.JSONField(allow_null=True)
    unit = serializers.ChoiceField(choices=UNITS, allow_blank=True)
    subject = serializers.CharField(
        allow_blank=True,
        help_text="A pod set, if of one; of quota, a flavor; for a budget, whose it is.",
    )
    starts_now = serializers.BooleanField()
    text = serializers.CharField()


class StartOut(serializers.Serializer[Any]):  # Any: plain rows
    cluster = serializers.CharField()
    flavors = serializers.ListField(child=serializers.CharField())
    pods = serializers.IntegerField(help_text="Those that start; no more are added later.")
    choice = ChoiceOut(allow_null=True, help_text="Null where there is nothing to choose.")


class PlannedOut(serializers.Serializer[Any]):  # Any: plain rows
    """What a plan made at `as_of` decides. It starts where all `checks` and all of one option's
    pass; after the first that fails none is reached."""

    as_of = serializers.DateTimeField()
    start = StartOut(allow_null=True)
    reason = ReasonOut(allow_null=True)
    checks = CheckOut(many=True)
    options = OptionOut(many=True)
    relaxations = RelaxationOut(many=True, help_text="The cheapest first.")


class ExplanationOut(PlannedOut):
    """The same of what waits, with the cycle that decided so."""

    decided = DecidedOut(
        allow_null=True,
        help_text="The cycle that held it for this kind of reason.",
    )


class WantedGateOut(serializers.Serializer[Any]):  # Any: plain rows
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=list(KINDS))
    owner = serializers.CharField()
    within_s = serializers.IntegerField(allow_null=True)


class DryRunOut(PlannedOut):
    estimate = EstimateOut(allow_null=True, help_text="Of what would wait.")
    of_element = serializers.BooleanField(
        help_text="Whether it is told of one element of the array that was asked about."
    )
    gates = WantedGateOut(
        many=True, help_text="Those that it would get, the project's first; all have to open."
    )


def explanation(found: Explained) -> Out:
    decided = None if found.decided is None else asdict(found.decided)
    return {**_planned(found), "decided": decided}


def _planned(found: Explained) -> Out:
    start = found.start
    return {
        "as_of": found.as_of,
        "start": None if start is None else asdict(start),
        "reason": None if found.reason is None else reason(found.reason),
        "checks": [check(each) for each in found.checks],
        "options": [_option(each) for each in found.chains],
        "relaxations": [_relaxation(each) for each in found.relaxations],
    }


def dry_run(found: Explained, *, of_element: bool) -> Out:
    return {
        **_planned(found),
        "estimate": estimate(found.forecast, as_of=found.as_of),
        "of_element": of_element,
        "gates": [asdict(each) for each in found.gates],
    }


def estimate(made: Forecast | None, *, as_of: datetime) -> Out | None:
    """Of what would wait, as the API gives it; None for what would not."""
    if made is None:
        return None
    basis = made.basis.value
    return {"p50_s": made.p50_s, "p90_s": made.p90_s, "as_of": as_of, "basis": basis}


def reason(told: Reason) -> Out:
    """One, as the API gives it."""
    numbers = dict(told.numbers)
    return {"code": told.code.value, "numbers": numbers, "text": reasons.describe(told)}


def _option(chain: Chain) -> Out:
    checks = [check(each) for each in chain.checks]
    return {"flavors": list(chain.flavors), "told": chain.told, "checks": checks}


def check(asked: Check) -> Out:
    """One, as the API gives it."""
    state = {True: "passed", False: "failed", None: "not-reached"}[asked.passed]
    return {
        "code": asked.code.value,
        "state": state,
        "value": asked.value,
        "limit": asked.limit,
        "unit": asked.unit.value,
        "flavor": asked.flavor,
        "where": asked.where,
        "text": _text(asked),
    }


def _text(check: Check) -> str:
    """What is asked, and the numbers: "Quota of Vision Lab: 9 of at most 8 h100"."""
    title = _TITLES[check.code].format(where=check.where)
    if check.value is None:
        return title
    value = change.in_words(check.value, check.unit)
    if check.code is CheckCode.EVICTION:
        return f"{title}: of {value} that may be stopped none helps"
    if check.limit is None:
        return f"{title}: {f'{value} {check.flavor}'.rstrip()}, without a limit"
    most = change.in_words(check.limit, check.unit)
    return f"{title}: {value} of at most {most} {check.flavor}".rstrip()


def _relaxation(found: Relaxation) -> Out:
    return {**asdict(found), "text": change.describe(found)}
