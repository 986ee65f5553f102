"""Strict input fields: a JSON value of the right type or a 400. Nothing is coerced, nothing
ignored."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.kernel import text
from controlplane.kernel.errors import no_such_field
from controlplane.kernel.queues import MAX_NOTE, QueueState

BIGINT_MAX = 2**63 - 1
_FLOATS_ARE_WHOLE = 2.0**53


def beyond(value: object, *, low: int, high: int) -> bool:
    """Whether a JSON value is a whole number outside of these bounds, by far.

    The parser makes a float of what needs more than 64 bits; from 2^53 on every float is whole.
    """
    if not isinstance(value, int | float):
        return False
    return abs(value) >= _FLOATS_ARE_WHOLE and not low <= value <= high


class StrictSerializer(serializers.Serializer[Any]):  # Any: it makes dicts
    """Takes an object; each member that it does not know is a problem of its own."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:  # Any: JSON values
        if not isinstance(data, Mapping):
            raise serializers.ValidationError(
                {"non_field_errors": ["An object is wanted."]}, code="wrong-type"
            )
        known = no_such_field(name for name, field in self.fields.items() if not field.read_only)
        unknown = {
            str(name): [serializers.ErrorDetail(known, code="unknown-field")]
            for name in data
            if name not in self.fields
        }
        if unknown:
            raise serializers.ValidationError(unknown)
        value: dict[str, Any] = super().to_internal_value(data)  # Any: as the fields say
        return value


class Integer(serializers.IntegerField):
    """A JSON integer: no string, no 1.0, no true."""

    default_error_messages = {
        "wrong-type": "A whole number is wanted.",
        "out-of-range": "The number is not between {low} and {high}.",
    }

    def __init__(self, *, low: int = 0, high: int = BIGINT_MAX, **kwargs: Any) -> None:
        self.low, self.high = low, high
        super().__init__(min_value=low, max_value=high, **kwargs)

    def to_internal_value(self, data: Any) -> int:  # Any: a JSON value
        if beyond(data, low=self.low, high=self.high):
            self.fail("out-of-range", low=self.low, high=self.high)
        if type(data) is not int:  # bool is an int in Python, not in JSON
            self.fail("wrong-type")
        value: int = data
        return value


class Boolean(serializers.BooleanField):
    """true or false, nothing that looks like them."""

    default_error_messages = {"wrong-type": "true or false is wanted."}

    def to_internal_value(self, data: Any) -> bool:  # Any: a JSON value
        if not isinstance(data, bool):
            self.fail("wrong-type")
        return bool(data)


class Text(serializers.CharField):
    """A JSON string without control or bidirectional characters; `lines` permits line feeds and
    tabs."""

    default_error_messages = {
        "wrong-type": "A string is wanted.",
        "bad-character": "{fault}: not accepted here.",
    }

    def __init__(self, *, lines: bool = False, **kwargs: Any) -> None:
        self.lines = lines
        super().__init__(**kwargs)

    def run_validation(self, data: Any = serializers.empty) -> Any:  # Any: a JSON value
        if data is not serializers.empty and data is not None and not isinstance(data, str):
            self.fail("wrong-type")
        if isinstance(data, str):
            fault = text.fault(data, lines=self.lines)
            if fault:
                self.fail("bad-character", fault=fault)
        return super().run_validation(data)


class Id(serializers.UUIDField):
    """A UUID as a string."""

    default_error_messages = {"invalid": "A UUID is wanted."}

    def to_internal_value(self, data: Any) -> UUID:  # Any: a JSON value
        if not isinstance(data, str) or len(data) != 36:
            self.fail("invalid", value="")
        value: UUID = super().to_internal_value(data)
        return value


@extend_schema_field({"type": "string", "format": "date-time"})
class Moment(serializers.Field[datetime, Any, str, Any]):
    """An RFC 3339 moment with a zone."""

    default_error_messages = {"invalid": "A moment with a zone is wanted: 2026-11-21T09:00:00Z."}

    def to_internal_value(self, data: Any) -> datetime:  # Any: a JSON value
        try:
            moment = parse_datetime(data) if isinstance(data, str) and len(data) < 40 else None
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None or not 1970 < moment.year < 9000:
            self.fail("invalid")
        return moment

    def to_representation(self, value: datetime) -> str:
        return value.isoformat()


@extend_schema_field({"type": "string"})
class Words(serializers.Field[tuple[str, ...], Any, str, Any]):
    """A query parameter that holds some of a closed set: `state=PENDING,RUNNING`."""

    default_error_messages = {"invalid": "{word!r} is none of: {choices}."}

    def __init__(self, *, choices: list[str], **kwargs: Any) -> None:
        self.choices = choices
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> tuple[str, ...]:  # Any: a query's text
        words = tuple(str(data).split(","))
        for word in words:
            if word not in self.choices:
                self.fail("invalid", word=word[:40], choices=", ".join(self.choices))
        return words

    def to_representation(self, value: tuple[str, ...]) -> str:
        return ",".join(value)


def pointers_to_query(details: Any) -> Iterator[tuple[str, str, str]]:  # Any: DRF's details
    """(parameter, code, message) of each fault in a query."""
    for name, found in details.items():
        for each in found:
            yield name, str(each["code"]).replace("_", "-"), str(each["message"])


class QueueStateIn(StrictSerializer):
    """Where a queue is moved to, whosever it is."""

    state = serializers.ChoiceField(choices=QueueState.values)
    note = Text(
        max_length=MAX_NOTE,
        required=False,
        default="",
        allow_blank=True,
        help_text="Why; wanted unless the queue is opened.",
    )
