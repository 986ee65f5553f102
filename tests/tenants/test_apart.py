"""Of many rows that are due, one that fails keeps no other from its turn."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tenants.models import Grant
from tenants.services import grants
from tests import factories
from tests.conftest import Cast
from tests.tenants.granting import ask, grant, nominal

AT = factories.AT
DAY = timedelta(days=1)


def test_a_grant_whose_end_fails_keeps_no_other(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    h100 = factories.flavor()
    factories.quota(cast.detection, h100, 8000)
    grant(cast, ask(cast, h100, until_at=AT + DAY))
    grant(cast, ask(cast, h100, 20_000, until_at=AT + 2 * DAY))
    end, sooner = grants._end, Grant.objects.order_by("until_at")[0]

    def fails(id: UUID, **at: Any) -> bool:  # Any: as it takes
        if id == sooner.id:
            raise ValueError("No.")
        return end(id, **at)

    with monkeypatch.context() as patched:
        patched.setattr(grants, "_end", fails)
        assert grants.begin_and_end_due(at=AT + 3 * DAY) == 1
    assert grants.begin_and_end_due(at=AT + 3 * DAY) == 1
    assert nominal() == 8000
    assert f"the end of grant {sooner.id} failed" in caplog.text
