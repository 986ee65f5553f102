"""Makes one legal row of any table, with whatever it hangs on.

What must not live here: anything of the product but its models. These rows must not change
because a service or another test's factory did.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, IntegerRangeField
from django.db import models
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange, NumericRange

from clusters.models import Flavor
from clusters.sealing import SMALLEST
from controlplane.kernel.ids import uuid7
from scheduler.models import Placement, PodSetFlavor
from tenants.models import Charge

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)

_numbers = count(1)
type Values = Mapping[str, Any]  # Any: a column's value, of whatever type, or a function making it
type _Known = dict[type[models.Model], models.Model]


def make[M: models.Model](model: type[M], /, **given: Any) -> M:  # Any: as Values
    """Insert a row of `model`. What is not given is filled in, and the rows it needs are made.

    All rows of one call agree: a placement's node is of its attempt's cluster, and so on.
    """
    known: _Known = {}
    values = settled(given)
    for value in values.values():
        _remember(known, value)
    return _make(model, known, values)


def settled(values: Values) -> dict[str, Any]:  # Any: as Values
    """The values, with those that are functions called."""
    return {name: value() if callable(value) else value for name, value in values.items()}


def _remember(known: _Known, value: object) -> None:
    if isinstance(value, models.Model) and type(value) not in known:
        known[type(value)] = value
        for field in value._meta.concrete_fields:
            if isinstance(field, models.ForeignKey):
                _remember(known, getattr(value, field.name))


def _make[M: models.Model](model: type[M], known: _Known, given: Values) -> M:
    values = dict(given)
    for field in model._meta.concrete_fields:
        if not {field.name, field.attname} & values.keys() and not isinstance(
            field, models.AutoField
        ):
            values[field.name] = (
                getattr(values[repeated[0]], repeated[1])
                if (repeated := _REPEATED.get((model, field.name)))
                else _value(field, known)
            )
    row = model(**values)
    if isinstance(row, Placement):
        accepted = PodSetFlavor.objects.filter(pod_set=row.pod_set)
        if not accepted.filter(flavor=row.flavor).exists():
            _make(PodSetFlavor, {}, {"pod_set": row.pod_set, "flavor": row.flavor,
                                     "position": accepted.count()})  # fmt: skip
    row.save(force_insert=True)
    known.setdefault(model, row)
    return row


def _value(field: "models.Field[Any, Any]", known: _Known) -> object:  # Any: of any type
    if field.has_default():
        return field.get_default()
    if field.null:
        return None
    if isinstance(field, models.ForeignKey):
        parent = field.related_model
        assert isinstance(parent, type), field
        return known.get(parent) or _make(parent, known, {})
    number = next(_numbers)
    if field.blank and field.empty_strings_allowed:
        return f"gpu-{number}" if field.model is Flavor and field.name == "model" else ""
    if field.choices:
        return next(iter(field.choices))[0]
    for kind, fill in _FILL:
        if isinstance(field, kind):
            return fill(field, number)
    raise LookupError(f"rows.py knows no value for {field}")


# What a column repeats of a row that its own row names.
_REPEATED: dict[tuple[type[models.Model], str], tuple[str, str]] = {
    (Charge, "workload_id"): ("usage", "workload_id"),
    (Charge, "currency"): ("rate", "currency"),
}

# Numbered, so that no two rows meet in a unique column by chance.
_FILL: tuple[tuple[type, Callable[[Any, int], object]], ...] = (  # Any: the field, of that type
    (ArrayField, lambda field, _: [each for each, _ in (field.base_field.choices or ())[:1]]),
    (IntegerRangeField, lambda *_: NumericRange(0, 4)),
    (DateTimeRangeField, lambda *_: DateTimeTZRange(NOON, NOON + HOUR)),
    (models.DateTimeField, lambda _, number: NOON + timedelta(seconds=number)),
    (models.DateField, lambda *_: NOON.date()),
    (models.DecimalField, lambda *_: Decimal(1)),
    (models.UUIDField, lambda *_: uuid7()),
    (models.JSONField, lambda *_: {}),
    (models.BooleanField, lambda *_: False),
    # A sealed box at least, which no other column minds.
    (models.BinaryField, lambda *_: b"\x01" + bytes(SMALLEST - 1)),
    (models.IntegerField, lambda *_: 1),
    (
        (models.CharField),
        lambda field, number: f"n{number}-{field.name.replace('_', '-')}"[: field.max_length],
    ),
    (models.TextField, lambda field, number: f"n{number} {field.name}"),
)
