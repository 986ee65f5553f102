"""A provider, and Berth as it knows it."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from controlplane.kernel import clock
from tenants.access import actor_for
from tenants.models import Role
from tenants.services import group_roles
from tests import factories
from tests.conftest import Cast
from tests.saml.forging import told
from tests.saml.running import HERE, RunningProvider, running


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
def liar(cast: Cast, settings: Settings) -> None:
    """Its group "all" may see Speech Lab."""
    settings.BERTH_PROVIDERS = {"liar": told()}
    settings.BERTH_PUBLIC_URL = HERE
    fay = factories.user("fay")
    factories.member(fay, Role.OWNER)
    group_roles.add(
        actor=actor_for(user=fay), provider="liar", group="all", role=Role.VIEWER,
        place=cast.speech, at=clock.now(),
    )  # fmt: skip
