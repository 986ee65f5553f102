"""`berth login` keeps a server and a token; the other commands use them, their options win."""

import json
import stat
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from tenants.models import Scope, Token
from tests import factories
from tests.cli.conftest import Berth
from tests.conftest import Cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.part_web]

NOTHING = {"BERTH_SERVER": "", "BERTH_TOKEN": ""}
"""No environment variable; click takes an empty one for none."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "berth" / "login.json"


@pytest.fixture
def text(cast: Cast) -> str:
    """Of a token of ada's, who is not the one of `berth`'s environment."""
    made = factories.token(cast.ada, Scope.READ, Scope.SUBMIT)
    return factories.bearer(made)["Authorization"].removeprefix("Bearer ")


def sign_in(berth: Berth, url: str, text: str) -> None:
    done = berth("login", "--server", f"{url}/", text_in=f"{text}\n", **NOTHING)
    assert done.exit_code == 0, done.output


def test_it_keeps_what_works_for_the_user_alone(
    berth: Berth, live_server: LiveServer, file: Path, text: str
) -> None:
    done = berth("login", "--server", live_server.url, text_in=f"{text}\n", **NOTHING)
    assert f"Signed in to {live_server.url} as ada; kept in {file}." in done.output
    assert text not in done.output
    assert json.loads(file.read_text()) == {"server": live_server.url, "token": text}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert list(file.parent.iterdir()) == [file]


def test_the_other_commands_use_it(
    berth: Berth, live_server: LiveServer, cast: Cast, text: str
) -> None:
    sign_in(berth, live_server.url, text)
    used = Token.objects.get(user=cast.ada)
    Token.objects.update(last_used_at=None)
    done = berth("queue", "--project", "detection", **NOTHING)
    assert done.exit_code == 0, done.output
    used.refresh_from_db()
    assert used.last_used_at is not None


def test_the_environment_wins(
    berth: Berth, live_server: LiveServer, cast: Cast, text: str
) -> None:
    sign_in(berth, live_server.url, text)
    Token.objects.update(last_used_at=None)
    assert berth("queue", "--project", "detection").exit_code == 0
    assert [token.user for token in Token.objects.exclude(last_used_at=None)] == [cast.ben]
    bad = berth("get", BERTH_TOKEN="berth_x_y", BERTH_SERVER="")
    assert "The token is not valid" in bad.output


def test_a_second_login_replaces_the_first(
    berth: Berth, live_server: LiveServer, file: Path, text: str
) -> None:
    sign_in(berth, live_server.url, text)
    assert berth("login").exit_code == 0  # by ben's environment
    assert json.loads(file.read_text())["token"] != text


def test_nothing_is_kept_of_what_is_refused(
    berth: Berth, live_server: LiveServer, file: Path
) -> None:
    bad = berth("login", "--server", live_server.url, text_in="berth_x_y\n", **NOTHING)
    assert (bad.exit_code, "The token is not valid" in bad.output) == (1, True)
    assert "does not answer" in berth("login", BERTH_SERVER="http://127.0.0.1:1").output
    assert "has to be an http(s) address" in berth("login", BERTH_SERVER="ftp://x").output
    assert not file.exists()


def test_without_one_it_says_what_to_do(berth: Berth) -> None:
    for environ, wanted in [
        (NOTHING, "--server or BERTH_SERVER"),
        (NOTHING | {"BERTH_SERVER": "http://localhost"}, "--token or BERTH_TOKEN"),
    ]:
        done = berth("get", **environ)
        assert done.exit_code == 2
        assert f"Not signed in: run `berth login`, or give {wanted}." in done.output


def test_a_kept_token_goes_to_no_other_server(
    berth: Berth, live_server: LiveServer, text: str
) -> None:
    sign_in(berth, live_server.url, text)
    done = berth("get", BERTH_SERVER="http://127.0.0.1:1", BERTH_TOKEN="")
    assert done.exit_code == 2
    assert f"The kept token is for {live_server.url}, not for http://127.0.0.1:1" in done.output


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"server": "x"}', "no json", "\x00"])
def test_a_file_that_is_none_of_ours_is_named(berth: Berth, file: Path, content: str) -> None:
    file.parent.mkdir(parents=True)
    file.touch(mode=0o600)
    file.write_text(content)
    done = berth("get", **NOTHING)
    assert done.exit_code == 1
    assert f"{file} holds no login: run `berth login` again." in done.output


def test_a_file_that_others_can_read_is_refused(
    berth: Berth, live_server: LiveServer, file: Path, text: str
) -> None:
    sign_in(berth, live_server.url, text)
    file.chmod(0o640)
    done = berth("get", **NOTHING)
    assert (done.exit_code, "chmod 600" in done.output) == (1, True)


def test_a_folder_that_can_not_be_written_is_named(
    berth: Berth, live_server: LiveServer, file: Path
) -> None:
    file.parent.parent.mkdir(parents=True)
    file.parent.write_text("a file where the folder has to be")
    done = berth("login")
    assert (done.exit_code, f"{file} can't be written" in done.output) == (1, True)


def test_it_lies_in_the_home_folder_unless_told_otherwise(
    berth: Berth, live_server: LiveServer, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for named in ("", "relative"):
        done = berth("login", HOME=str(home), XDG_CONFIG_HOME=named)
        assert f"kept in {home}/.config/berth/login.json" in done.output
