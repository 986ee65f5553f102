"""Two providers of different manners, and Berth as it knows both."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.oidc.running import RunningProvider, running


@pytest.fixture(scope="session")
def _acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProvider]:
    with running("acme", tmp_path_factory.mktemp("acme")) as made:
        yield made


@pytest.fixture(scope="session")
def _zen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProvider]:
    with running("zen", tmp_path_factory.mktemp("zen"), by_user_info=False) as made:
        yield made


@pytest.fixture
def acme(_acme: RunningProvider, settings: Settings) -> RunningProvider:
    """Tells of people where it is asked for user info."""
    _acme.people.clear()
    settings.BERTH_PROVIDERS = {**settings.BERTH_PROVIDERS, "acme": _acme.told}
    return _acme


@pytest.fixture
def zen(_zen: RunningProvider, settings: Settings) -> RunningProvider:
    """Tells of people in the ID token."""
    _zen.people.clear()
    settings.BERTH_PROVIDERS = {**settings.BERTH_PROVIDERS, "zen": _zen.told}
    return _zen
