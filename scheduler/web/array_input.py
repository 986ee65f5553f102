"""What a submission says of arrays, and of what it waits for. Read by `submission` and for POST
/arrays; the serializers here describe the same fields for OpenAPI."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from rest_framework import serializers

from controlplane.api.fields import Boolean, Id, Integer, StrictSerializer
from scheduler.services import specs
from scheduler.services.specs import ArraySpec, DependencySpec
from scheduler.web.reading import Faults, Json

ARRAY_FIELDS = frozenset({"size", "most_at_once"})
DEPENDENCY_FIELDS = frozenset({"workload", "array", "kind", "by_index", "on_unmet"})


def array(data: Mapping[str, Json], faults: Faults) -> ArraySpec | None:
    """The size of an array and its cap; None after noting why not."""
    size = faults.integer(data, "size", "", 1, specs.MAX_ELEMENTS, None)
    most = None
    if data.get("most_at_once") is not None:
        most = faults.integer(data, "most_at_once", "", 1, size or specs.MAX_ELEMENTS, None)
    return None if size is None else ArraySpec(size, most)


def depends_on(data: Mapping[str, Json], root: str, faults: Faults) -> tuple[DependencySpec, ...]:
    """What is waited for, each once in each way; empty when left out or at fault."""
    value = data.get("depends_on")
    pointer = f"{root}/depends_on"
    if value is None and "depends_on" not in data:
        return ()
    if not isinstance(value, list):
        faults.add(pointer, "wrong-type", "A list is wanted.")
        return ()
    if len(value) > specs.MAX_DEPENDENCIES:
        message = f"{len(value)} are too many; at most {specs.MAX_DEPENDENCIES}."
        faults.add(pointer, "too-many", message)
        return ()
    found = [_dependency(each, f"{pointer}/{index}", faults) for index, each in enumerate(value)]
    read = tuple(each for each in found if each is not None)
    if len(set(read)) != len(read):
        faults.add(pointer, "repeated", "Each may stand here once.")
    return read


def _dependency(value: Json, root: str, faults: Faults) -> DependencySpec | None:
    wanted = "An object with either workload or array, an id, and kind is wanted."
    if not isinstance(value, dict):
        faults.add(root, "wrong-type", wanted)
        return None
    before = len(faults.found)
    faults.unknown(value, DEPENDENCY_FIELDS, root)
    kind = value.get("kind", specs.AFTER[0])
    if not isinstance(kind, str) or kind not in specs.AFTER:
        faults.add(f"{root}/kind", "invalid", f"One of {', '.join(specs.AFTER)} is wanted.")
    named = [name for name in ("workload", "array") if name in value]
    if len(named) != 1:
        faults.add(root, "invalid", wanted)
        return None
    on = _id(value[named[0]])
    if on is None:
        faults.add(f"{root}/{named[0]}", "wrong-type", f"The id of one {named[0]} is wanted.")
    by_index = value.get("by_index", False)
    if not isinstance(by_index, bool):
        faults.add(f"{root}/by_index", "wrong-type", "true or false is wanted.")
    elif by_index and named[0] == "workload":
        faults.add(f"{root}/by_index", "invalid", "An array is wanted to wait for by index.")
    on_unmet = value.get("on_unmet", specs.ON_UNMET[0])
    if not isinstance(on_unmet, str) or on_unmet not in specs.ON_UNMET:
        wanted = " or ".join(specs.ON_UNMET)
        faults.add(f"{root}/on_unmet", "invalid", f"One of {wanted} is wanted.")
    if on is None or len(faults.found) != before:
        return None
    return DependencySpec(kind, on, named[0] == "array", by_index, on_unmet)


def _id(value: Json) -> UUID | None:
    if not isinstance(value, str) or len(value) != 36:
        return None
    try:
        return UUID(value)
    except ValueError:
        return None


class DependencyIn(StrictSerializer):
    """A workload or an array, one of them, of which the end is waited for. Description only."""

    workload = Id(required=False, help_text="Of a project that the caller sees.")
    array = Id(required=False, help_text="All of it: it succeeds when all of it does.")
    kind = serializers.ChoiceField(
        choices=list(specs.AFTER),
        required=False,
        default=specs.AFTER[0],
        help_text="How it has to end; after-failure is after a failure or a cancellation.",
    )
    by_index = Boolean(
        required=False,
        default=False,
        help_text="Each element of the array that waits, for the element of its index in that"
        " array alone, which has to have as many.",
    )
    on_unmet = serializers.ChoiceField(
        choices=list(specs.ON_UNMET),
        required=False,
        default=specs.ON_UNMET[0],
        help_text="What becomes of who waits, if it ends in another way: cancelled, or held until"
        " it is released.",
    )


class ArrayFieldsIn(StrictSerializer):
    """What an array has next to a workload's fields. Description only."""

    size = Integer(
        low=1,
        high=specs.MAX_ELEMENTS,
        help_text="How many workloads. Each finds its index, from 0, in BERTH_ARRAY_INDEX, and the"
        " size in BERTH_ARRAY_SIZE; its name is the array's with [index] behind.",
    )
    most_at_once = Integer(
        low=1,
        high=specs.MAX_ELEMENTS,
        required=False,
        allow_null=True,
        help_text="At most so many of it run at once, up to the size; left out, any number.",
    )


class ArraySumOut(serializers.Serializer[Any]):  # Any: plain rows
    """An array as a whole: `states` counts its elements by state."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    size = serializers.IntegerField()
    most_at_once = serializers.IntegerField(allow_null=True)
    states = serializers.DictField(child=serializers.IntegerField())


class ArrayOut(ArraySumOut):
    project = serializers.UUIDField()
    submitted_by = serializers.CharField()
    submitted_at = serializers.DateTimeField()


class NeedOut(serializers.Serializer[Any]):  # Any: plain rows
    """What is waited for; one of workload and array is null."""

    workload = serializers.UUIDField(allow_null=True)
    array = serializers.UUIDField(allow_null=True)
    kind = serializers.ChoiceField(choices=list(specs.AFTER))
    on_unmet = serializers.ChoiceField(choices=list(specs.ON_UNMET))
    unmet_at = serializers.DateTimeField(
        allow_null=True, help_text="When it was seen that it can't come true, if that holds it."
    )
    settled_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When its end was seen, or who waits was released; null while it is waited for.",
    )
