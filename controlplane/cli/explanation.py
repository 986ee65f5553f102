"""Why work waits, or would wait, as lines for a terminal."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

type Json = Any  # JSON values

_MARKS = {"passed": "ok", "failed": "NO", "not-reached": "-"}


def lines(answer: Json) -> Iterator[str]:
    """Of the answer of POST /workloads/dry-run, or of GET /workloads/{id}/explanation."""
    if answer.get("of_element"):
        yield "of one element of the array:"
    start = answer["start"]
    if start:
        flavors = ", ".join(start["flavors"])
        yield f"would start now on {start['cluster']}: {start['pods']} pods on {flavors}"
        if choice := start.get("choice"):  # a server before ADR 0089 tells none
            for one in choice["clusters"]:
                yield f"  {one['cluster']}  {one['text']}{_per_hour(one, choice)}"
    else:
        yield f"would wait: {answer['reason']['text']}"
    made = answer.get("estimate")
    if made and made["p50_s"] is not None:
        late = f" to {-(-made['p90_s'] // 60)}" if made["p90_s"] is not None else " or more"
        yield f"starts in about {-(-made['p50_s'] // 60)}{late} min"
    for gate in answer.get("gates", ()):
        yield f"would get the gate {gate['name']}, for {gate['owner']} to open"
    for one in answer["relaxations"]:
        yield f"  help  {one['text']}{' It would start now.' if one['starts_now'] else ''}"
    if decided := answer.get("decided"):
        kept = ", kept to be planned again" if decided["replayable"] else ""
        yield f"decided by cycle {decided['cycle']} at {decided['at']}{kept}"
    for check in answer["checks"]:
        yield line(check)
    for option in answer["options"]:
        yield heading(option["flavors"])
        for check in option["checks"]:
            yield line(check)


def _per_hour(offer: Json, choice: Json) -> str:
    """ "" where all clusters charge the same, and of a server that does not tell."""
    if offer.get("per_hour") is None:
        return ""
    return f" ({Decimal(offer['per_hour']).normalize():f} {choice['currency']} an hour)"


def heading(flavors: Sequence[str]) -> str:
    """Of the checks of one option."""
    return f"with {', '.join(flavors) or 'no accepted flavor'}:"


def line(check: Json) -> str:
    """One check, as the API gives it."""
    return f"  {_MARKS.get(check['state'], '?'):4}  {check['text']}"
