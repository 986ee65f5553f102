"""Fixtures of the loop's own tests."""

import pytest

from tests.scheduler.stage import Stage, build


@pytest.fixture
def stage(db: None) -> Stage:
    """In one transaction, rolled back at the end: nothing is committed, so no hint is sent."""
    return build()


@pytest.fixture
def committed(transactional_db: None) -> Stage:
    """The same in a database that really commits, for tests of several connections."""
    return build()
