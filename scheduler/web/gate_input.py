"""Gates as a submission declares them, as somebody decides them and as they are shown: read and
described."""

import re
from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from controlplane.api.fields import Integer, StrictSerializer, Text
from scheduler.models import Gate, GateState
from scheduler.services.gates import MAX_NOTE
from scheduler.web.reading import Faults, Json
from tenants.gating import GATE_NAME, KINDS, MAX_DECIDE_S, MAX_GATES, GateSpec

GATE_FIELDS = frozenset({"name", "kind", "owner", "within_s"})
STATES = GateState.values
DECIDED = [GateState.OPEN.value, GateState.REFUSED.value]
MAX_USERNAME = 150
_NAME = re.compile(GATE_NAME)
_USERNAME = re.compile(rf"[\w.@+-]{{1,{MAX_USERNAME}}}")


class GateIn(StrictSerializer):
    """Somebody opens it before the work may start."""

    name = serializers.RegexField(GATE_NAME, help_text="Once a workload.")
    kind = serializers.ChoiceField(
        choices=list(KINDS), help_text="Nobody opens a gate for approval of their own workload."
    )
    owner = Text(
        max_length=MAX_USERNAME,
        help_text="Who decides, by a token too: a user with a role in the project.",
    )
    within_s = Integer(
        low=1,
        high=MAX_DECIDE_S,
        required=False,
        allow_null=True,
        default=None,
        help_text="Not opened so many seconds after the submission it is refused; null is never.",
    )


class StandingGateOut(serializers.Serializer[Any]):  # Any: plain rows
    """Each submission to the project gets one like this."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=list(KINDS))
    owner = serializers.CharField(source="owner.username")
    within_s = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()


class DecisionIn(StrictSerializer):
    state = serializers.ChoiceField(choices=DECIDED)
    note = Text(
        max_length=MAX_NOTE,
        required=False,
        default="",
        allow_blank=True,
        help_text="For who submitted it; wanted where it is refused, which cancels the work.",
    )


class GateOut(serializers.Serializer[Any]):  # Any: plain rows
    """Refused without `decided_by`: by its deadline."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=list(KINDS))
    owner = serializers.CharField(source="owner.username")
    standing = serializers.BooleanField(help_text="Whether it is the project's, for all its work.")
    state = serializers.ChoiceField(choices=STATES)
    created_at = serializers.DateTimeField()
    deadline_at = serializers.DateTimeField(allow_null=True)
    decided_at = serializers.DateTimeField(allow_null=True)
    decided_by = serializers.CharField(source="decided_by.username", allow_null=True, default=None)
    note = serializers.CharField(allow_blank=True)


class WorkGateOut(GateOut):
    """Of a workload or of an array: one of the two is null."""

    workload = serializers.UUIDField(source="workload_id", allow_null=True)
    array = serializers.UUIDField(source="array_id", allow_null=True)
    work = serializers.SerializerMethodField()
    submitted_by = serializers.SerializerMethodField()
    project = serializers.UUIDField(source="project_id")

    def get_work(self, row: Gate) -> str:
        return str(row.workload or row.array)

    def get_submitted_by(self, row: Gate) -> str:
        work = row.workload or row.array
        return work.submitted_by.get_username() if work else ""


def gates(data: Mapping[str, Json], root: str, faults: Faults) -> tuple[GateSpec, ...]:
    """Of a submission below `root`, each by a name of its own; empty when left out or at fault."""
    value = data.get("gates")
    pointer = f"{root}/gates"
    if value is None and "gates" not in data:
        return ()
    if not isinstance(value, list):
        faults.add(pointer, "wrong-type", "A list is wanted.")
        return ()
    if len(value) > MAX_GATES:
        message = f"{len(value)} are too many; at most {MAX_GATES}."
        faults.add(pointer, "too-many", message)
        return ()
    found = [_gate(each, f"{pointer}/{index}", faults) for index, each in enumerate(value)]
    read = tuple(each for each in found if each is not None)
    faults.once(tuple(each.name for each in read), pointer)
    return read


def _gate(value: Json, root: str, faults: Faults) -> GateSpec | None:
    if not isinstance(value, dict):
        wanted = "An object with name, kind and owner is wanted."
        faults.add(root, "wrong-type", wanted)
        return None
    before = len(faults.found)
    faults.unknown(value, GATE_FIELDS, root)
    name = faults.string(
        value, "name", root, _NAME, "1 to 40 of a-z, 0-9 and -, like a Kubernetes name"
    )
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        faults.add(f"{root}/kind", "invalid", f"One of {', '.join(KINDS)} is wanted.")
    owner = faults.string(value, "owner", root, _USERNAME, "the name of a user")
    within_s = None
    if value.get("within_s") is not None:
        within_s = faults.integer(value, "within_s", root, 1, MAX_DECIDE_S, None)
    if len(faults.found) != before:
        return None
    return GateSpec(name, str(kind), owner, within_s)
