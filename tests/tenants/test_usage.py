"""Counting what is used: never past a row that is not there."""

import pytest
from django.db import transaction

from tenants.models import Quota
from tenants.services import usage
from tests import factories
from tests.conftest import Cast


def test_use_without_a_quota_is_refused_and_says_whose_and_of_what(cast: Cast) -> None:
    h100, small = factories.flavor(), factories.mig_flavor()
    factories.quota(cast.detection, h100)
    amounts = {(cast.detection.id, h100.id): 1000, (cast.detection.id, small.id): 1000}
    with (
        pytest.raises(usage.MissingQuota) as refused,
        transaction.atomic(),
    ):
        usage.add(amounts)
    whose = f"project {cast.detection.id} has no quota of flavor {small.id}"
    assert str(refused.value) == whose
    assert Quota.objects.get().used_milli == 0
