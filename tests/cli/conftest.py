"""The command line as ben, against a real server. No assertions."""

from pathlib import Path
from typing import Protocol

import pytest
from click.testing import CliRunner, Result
from pytest_django.live_server_helper import LiveServer

from controlplane.cli.main import main
from tenants.models import Scope
from tests import factories
from tests.conftest import Cast


class Berth(Protocol):
    """Run it with these arguments; `manifest` is given as the file job.yaml."""

    def __call__(
        self, *arguments: str, text_in: str = "", manifest: str = "", **environ: str
    ) -> Result: ...


@pytest.fixture
def berth(cast: Cast, live_server: LiveServer, tmp_path: Path) -> Berth:
    """By a token that may read and submit; north has 16 GPUs on one node, detection all of
    them."""
    factories.node(factories.cluster(), gpus=16)
    factories.quota(cast.detection, factories.flavor(), 16_000)
    token = factories.token(cast.ben, Scope.READ, Scope.SUBMIT)
    text = factories.bearer(token)["Authorization"].removeprefix("Bearer ")

    def run(*arguments: str, text_in: str = "", manifest: str = "", **environ: str) -> Result:
        env = {
            "BERTH_SERVER": live_server.url, "BERTH_TOKEN": text,
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
        } | environ  # fmt: skip
        words = list(arguments)
        if manifest:
            path = tmp_path / "job.yaml"
            path.write_text(manifest)
            words += ["-f", str(path)]
        return CliRunner().invoke(main, words, env=env, input=text_in)

    return run
