"""Why work started in the cluster that it started in: as rows keep it, and as people read it."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from django.conf import settings

from scheduler.core.plan import Choice, Offer, PassedFor, Verdict
from scheduler.core.snapshot import Snapshot
from tenants.pricing import MICRO

type Told = dict[str, Any]  # Any: JSON
"""{"kept", "currency", "clusters": [{"cluster", "verdict", "free_milli", "per_hour"}], "passed":
[{"flavors", "why"}]}, as `core.plan.Choice`, with names. `currency` is None where all clusters
charged the same; before there was any it was left out, as `per_hour` was."""

NANO = Decimal("1e-9")

VERDICTS: Mapping[Verdict, str] = {
    Verdict.CHOSEN: "taken: of those with room for all of it the cheapest, of those as cheap the"
    " one with least free; else the one where most of it starts",
    Verdict.FULL: "had no room for it",
    Verdict.NO_MORE: "no more of it would have started there",
    Verdict.DEARER: "not asked: it costs more there, or has no price there yet",
    Verdict.EMPTIER: "not asked: more was free there, which stays together for larger work",
    Verdict.UNUSABLE: "took no new work",
    Verdict.NOT_ACCEPTED: "not among the clusters that it names",
}
PASSED: Mapping[PassedFor, str] = {
    PassedFor.LIMIT: "a quota, cap or budget did not cover it",
    PassedFor.GUARANTEE: "beyond what is guaranteed, within which it started so",
    PassedFor.ROOM: "there was no room",
    PassedFor.RESERVED: "what was free is reserved for others",
    PassedFor.PRICE: "as welcome, and would have left less that others can use",
}


def naming(snapshot: Snapshot) -> Callable[[Choice | None], Told | None]:
    """What tells choices of plans of that snapshot by names."""
    clusters = {cluster.id: cluster.name for cluster in snapshot.clusters}
    flavors = {flavor.id: flavor.name for flavor in snapshot.flavors}

    def named(choice: Choice | None) -> Told | None:
        if choice is None:
            return None
        differ = any(offer.nano_per_hour is not None for offer in choice.offers)
        return {
            "kept": choice.kept,
            "currency": settings.BERTH_CURRENCY if differ else None,
            "clusters": [
                {
                    "cluster": clusters[offer.cluster],
                    "verdict": offer.verdict.value,
                    "free_milli": offer.free_milli,
                    "per_hour": _per_hour(offer),
                }
                for offer in choice.offers
            ],
            "passed": [
                {"flavors": [flavors[id] for id in each.flavors], "why": each.why.value}
                for each in choice.passed
            ],
        }

    return named


def _per_hour(offer: Offer) -> str | None:
    if offer.nano_per_hour is None:
        return None
    return str((offer.nano_per_hour * NANO).quantize(MICRO))


def shown(told: Told | None) -> Told | None:
    """The same with a text of each cluster and of each option that was passed over."""
    if told is None:
        return None
    clusters, passed = told["clusters"], told["passed"]
    return {
        "kept": told["kept"],
        "currency": told.get("currency"),
        "clusters": [
            each | {"per_hour": _amount(each), "text": VERDICTS[Verdict(each["verdict"])]}
            for each in clusters
        ],
        "passed": [each | {"text": PASSED[PassedFor(each["why"])]} for each in passed],
    }


def _amount(told: Told) -> Decimal | None:
    """Of one cluster."""
    per_hour = told.get("per_hour")
    return None if per_hour is None else Decimal(per_hour)
