"""A provider, and Berth as it knows it."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tenants.models import Role, User
from tests.arriving import HERE, give
from tests.conftest import Cast
from tests.saml.forging import told
from tests.saml.running import RunningProvider, running


@pytest.fixture(scope="session")
def _campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProvider]:
    with running("campus", tmp_path_factory.mktemp("campus")) as made:
        yield made


@pytest.fixture
def campus(_campus: RunningProvider, settings: Settings) -> RunningProvider:
    _campus.people.clear()
    _campus.settings.clear()
    settings.BERTH_PROVIDERS = {"campus": _campus.told}
    settings.BERTH_PUBLIC_URL = HERE
    return _campus


@pytest.fixture
def liar(cast: Cast, fay: User, settings: Settings) -> None:
    """Its group "all" may see Speech Lab."""
    settings.BERTH_PROVIDERS = {"liar": told()}
    settings.BERTH_PUBLIC_URL = HERE
    give(fay, "all", Role.VIEWER, cast.speech, provider="liar")
