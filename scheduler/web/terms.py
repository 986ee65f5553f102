"""What a submission says of failing and of being stopped: read, described, and shown again."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from controlplane.api.fields import Integer, StrictSerializer
from scheduler.core.failures import (
    MOST_EXIT_CODES,
    MOST_RETRIES,
    NODE_LOSSES,
    REQUEUE_S,
    RETRIABLE,
    RETRIES,
    FailureClass,
    Retries,
)
from scheduler.models import Workload
from scheduler.web.reading import Faults, Json

CLASSES = [each.value for each in FailureClass]
RETRIED = [each.value for each in RETRIABLE]
RETRIES_FIELDS = frozenset({"limit", "on", "exit_codes"})


class RetriesIn(StrictSerializer):
    """Which failures are tried again. Description only: `retries` reads it."""

    limit = Integer(
        low=0,
        high=MOST_RETRIES,
        required=False,
        default=RETRIES.limit,
        help_text=f"How often, of all failures but lost nodes: those have {NODE_LOSSES} of their"
        " own.",
    )
    on = serializers.ListField(
        child=serializers.ChoiceField(choices=RETRIED),
        required=False,
        help_text="Of which class; left out: refused, node-lost and evicted, which are the"
        " cluster's doing. Empty: none, not even lost nodes.",
    )
    exit_codes = serializers.ListField(
        child=Integer(low=1, high=255),
        required=False,
        max_length=MOST_EXIT_CODES,
        help_text="Exit codes that are tried again though exit-code is not in `on`: when each pod"
        " that failed has one of them.",
    )


class RetriesOut(serializers.Serializer[Any]):  # Any: plain rows
    limit = serializers.IntegerField()
    on = serializers.ListField(child=serializers.ChoiceField(choices=RETRIED))
    exit_codes = serializers.ListField(child=serializers.IntegerField())


def retries(data: Mapping[str, Json], root: str, faults: Faults) -> Retries:
    """Of a submission below `root`; what is left out of it is as by default."""
    pointer = f"{root}/retries"
    value = faults.member(data, "retries", root, RETRIES_FIELDS, "limit, on and exit_codes")
    if value is None:
        return RETRIES
    limit = faults.integer(value, "limit", pointer, 0, MOST_RETRIES, RETRIES.limit) or 0
    on = faults.items(value, "on", pointer, len(RETRIED), _class_fault)
    faults.once(on, f"{pointer}/on")
    return Retries(
        limit=limit,
        on=tuple(FailureClass(each) for each in on if each in RETRIED)
        if "on" in value
        else RETRIES.on,
        exit_codes=_exit_codes(value, pointer, faults),
    )


def cluster_loss_requeue_s(data: Mapping[str, Json], root: str, faults: Faults) -> int | None:
    """Of a submission below `root`; None is to wait for its cluster."""
    if data.get("cluster_loss_requeue_s") is None:
        return None
    return faults.integer(data, "cluster_loss_requeue_s", root, *REQUEUE_S, default=None)


def shown(row: Workload) -> dict[str, Json]:
    """As RetriesOut."""
    return {
        "limit": row.retry_limit,
        "on": row.retry_on,
        "exit_codes": row.retry_exit_codes,
    }


def _class_fault(value: str) -> str | None:
    return None if value in RETRIED else f"One of {', '.join(RETRIED)} is wanted."


def _exit_codes(data: Mapping[str, Json], root: str, faults: Faults) -> tuple[int, ...]:
    value = data.get("exit_codes", [])
    pointer = f"{root}/exit_codes"
    if not isinstance(value, list):
        faults.add(pointer, "wrong-type", "A list of whole numbers is wanted.")
        return ()
    if len(value) > MOST_EXIT_CODES:
        message = f"{len(value)} are too many; at most {MOST_EXIT_CODES}."
        faults.add(pointer, "too-many", message)
        return ()
    codes = [
        faults.integer({str(index): code}, str(index), pointer, 1, 255, None)
        for index, code in enumerate(value)
    ]
    found = tuple(code for code in codes if code is not None)
    faults.once(found, pointer)
    return found
