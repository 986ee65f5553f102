"""Plans that somebody asks for are bounded for each person, whatever they ask by."""

from datetime import timedelta

import pytest

from controlplane.kernel.throttle import Throttle, TooOften
from scheduler.services import asking
from tenants.access import actor_for
from tests import factories
from tests.conftest import Cast


def test_more_tokens_are_no_more_plans(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "ASKED", Throttle(most=2, window=timedelta(minutes=1)))
    for _ in range(2):
        token = factories.token(cast.ben)
        with asking.turn(actor=actor_for(user=cast.ben, token=token), at=factories.AT):
            pass
    with (
        pytest.raises(TooOften),
        asking.turn(actor=actor_for(user=cast.ben), at=factories.AT),
    ):
        pass
    with asking.turn(actor=actor_for(user=cast.ada), at=factories.AT):
        pass
