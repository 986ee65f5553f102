"""What the API refuses it explains, whichever endpoint refuses: bounds, known fields, pages."""

from collections.abc import Iterator
from io import BytesIO

import pytest
from rest_framework import serializers

from controlplane import urls  # loads every endpoint with its serializers
from controlplane.api.fields import Integer, StrictSerializer
from controlplane.api.problems import KINDS, type_of
from controlplane.api.render import OrjsonParser
from scheduler.core.bounds.limits import HOPELESS

assert urls.urlpatterns


def taken(root: type[StrictSerializer] = StrictSerializer) -> Iterator[type[StrictSerializer]]:
    """Every body and query that an endpoint takes."""
    for each in root.__subclasses__():
        yield each
        yield from taken(each)


SERIALIZERS = sorted(set(taken()), key=lambda each: each.__qualname__)
WHOLE = [
    pytest.param(field, id=f"{each.__name__}.{name}")
    for each in SERIALIZERS
    for name, field in each().fields.items()
    if isinstance(field, Integer)
]


def refusal(field: Integer, value: object) -> tuple[str, str]:
    with pytest.raises(serializers.ValidationError) as refused:
        field.run_validation(value)
    assert isinstance(refused.value.detail, list)
    (detail,) = refused.value.detail
    assert isinstance(detail, serializers.ErrorDetail)
    return str(detail.code), str(detail)


def test_there_are_serializers_with_whole_numbers() -> None:
    assert len(SERIALIZERS) > 10
    assert len(WHOLE) > 10


@pytest.mark.parametrize("field", WHOLE)
@pytest.mark.parametrize("text", ["1" + "0" * 30, "-1" + "0" * 30, "1e300"])
def test_a_number_that_json_can_not_hold_is_out_of_range(field: Integer, text: str) -> None:
    value = OrjsonParser().parse(BytesIO(text.encode()))
    bounds = f"between {field.low} and {field.high}"
    assert refusal(field, value) == ("out-of-range", f"The number is not {bounds}.")


@pytest.mark.parametrize("value", [1.0, 2.5, float(2**52), True, "1", float("nan")])
def test_what_is_no_whole_number_is_of_the_wrong_type(value: object) -> None:
    assert refusal(Integer(), value)[0] == "wrong-type"


@pytest.mark.parametrize("serializer", SERIALIZERS, ids=lambda each: each.__name__)
def test_an_unknown_field_is_told_the_known_ones(serializer: type[StrictSerializer]) -> None:
    asked = serializer(data={"no such": 1})
    assert not asked.is_valid()
    (message,) = asked.errors["no such"]
    assert message.code == "unknown-field"
    for name, field in asked.fields.items():
        assert field.read_only or name in message


@pytest.mark.parametrize("code", sorted(HOPELESS))
def test_a_reason_to_refuse_a_submission_has_its_page(code: str) -> None:
    assert code in KINDS
    assert type_of(code).endswith(f"/{code}")
