"""Values that have two homes, because a home may not import the other, are the same values."""

from enum import StrEnum

import pytest
from django.db.models import TextChoices

from clusters import models as clusters
from scheduler.core import snapshot


@pytest.mark.parametrize(
    ("choices", "enum"),
    [
        (clusters.FlavorKind, snapshot.FlavorKind),
        (clusters.Isolation, snapshot.Isolation),
        (clusters.DeviceMode, snapshot.DeviceMode),
        (clusters.Placing, snapshot.Placing),
    ],
)
def test_the_stored_choices_are_the_cores(choices: type[TextChoices], enum: type[StrEnum]) -> None:
    assert {each.name: each.value for each in choices} == {each.name: each.value for each in enum}
