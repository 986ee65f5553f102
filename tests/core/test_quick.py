"""What is made quickly is what its class makes."""

from dataclasses import FrozenInstanceError

import pytest

from scheduler.core.plan import Place
from scheduler.core.quick import quick
from scheduler.core.units import WHOLE_DEVICE, DeviceId, FlavorId, NodeId, PodSetId

PLACE = quick(Place)


def test_it_is_of_the_class_and_equal_to_what_that_makes() -> None:
    spans = ((DeviceId("d0"), WHOLE_DEVICE),)
    asked = PodSetId("p"), 0, NodeId("n"), FlavorId("f"), 1000, 2000, 64
    made = PLACE(*asked, spans)
    assert type(made) is Place
    assert made == Place(*asked, spans)
    assert hash(made) == hash(Place(*asked, spans))
    assert PLACE(*asked) == Place(*asked)  # the default is there too


def test_it_may_not_be_changed_once_it_is_made() -> None:
    made = PLACE(PodSetId("p"), 0, NodeId("n"), FlavorId("f"), 1000, 2000, 64)
    with pytest.raises(FrozenInstanceError):
        made.rank = 1  # type: ignore[misc]  # which is what is tested
