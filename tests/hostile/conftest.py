"""The lab of each test, in which a watcher follows for each thing that is tried."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.children import Children
from tests.crash.conftest import children
from tests.hostile.lab import Lab, furnished

__all__ = ["children"]


@pytest.fixture
def lab(transactional_db: None, children: Children, tmp_path: Path) -> Iterator[Lab]:
    with furnished(children, tmp_path) as lab:
        yield lab
