"""Fixtures of the flows: a world on a fresh simulator, on a database that really commits."""

from collections.abc import Iterator

import pytest

from tests.flows.world import World, build
from tests.simulation import simulation


@pytest.fixture
def world(transactional_db: None) -> Iterator[World]:
    with simulation(layout="demo-north") as simulator:
        yield build(simulator)
