"""Credentials: what is accepted, and that a refusal says why and never what is in the file."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from pytest_django import Settings

from clusters.registry import BadCredential, connect
from tests.simulation import Simulator, simulator

__all__ = ["simulator"]

pytestmark = pytest.mark.part_simulator

TOKEN = "canary-token-0123456789"
type Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, settings: Settings) -> Write:
    """Write north.json, by fields or as it is."""
    settings.BERTH_CREDENTIALS_DIR = tmp_path

    def write(contents: bytes | None = None, *, mode: int = 0o600, **fields: Any) -> Path:
        path = tmp_path / "north.json"
        path.touch(mode=0o600)
        good = {"server": "https://north.example.test:6443", "token": TOKEN}
        path.write_bytes(orjson.dumps({**good, **fields}) if contents is None else contents)
        path.chmod(mode)
        return path

    return write


def refusal(name: str = "north") -> str:
    with pytest.raises(BadCredential) as raised:
        connect(name)
    assert TOKEN not in str(raised.value)
    assert raised.value.__cause__ is None
    return str(raised.value)


def test_a_registered_cluster_answers(
    simulator: Simulator, tmp_path: Path, settings: Settings
) -> None:
    settings.BERTH_CREDENTIALS_DIR = tmp_path / "credentials"
    simulator.write_credential(tmp_path / "credentials", "north")
    port = connect("north")
    assert port.version().simulated
    port.close()


@pytest.mark.parametrize(
    "server",
    [
        "https://north.example.test",
        "https://north.example.test:6443/k8s/clusters/c-1/",
        "https://[2001:db8::1]:6443",
        "http://127.0.0.1:8001",
        "http://localhost:8001",
        "http://[::1]:8001",
    ],
)
def test_https_and_loopback_are_accepted(write: Write, server: str) -> None:
    write(server=server)
    connect("north").close()


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("http://north.example.test", "not https"),
        ("http://127.0.0.1.example.test", "not https"),
        ("ftp://north.example.test", "not https"),
        ("file:///etc/passwd", "no URL"),
        ("north.example.test", "no URL"),
        ("https://user:word@north.example.test", "more than a host"),
        ("https://north.example.test?x=1", "more than a host"),
        ("https://north.example.test:port", "no URL"),
        ("https://north.example.test/\r\nX: y", "no URL"),
        ("https://[::1", "no URL"),
        ("", "no URL"),
    ],
)
def test_any_other_server_is_refused(write: Write, server: str, why: str) -> None:
    write(server=server)
    assert why in refusal()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"exec": {"command": "sh"}}, "unknown fields: exec"),
        ({"insecure-skip-tls-verify": True}, "unknown fields: insecure-skip-tls-verify"),
        ({"tokenFile": "/etc/shadow"}, "unknown fields"),
        ({"proxy-url": "http://x"}, "unknown fields"),
        ({"token": ""}, "token"),
        ({"token": "short"}, "at least 16"),
        ({"token": f"{TOKEN}\n"}, "token"),
        ({"token": f"{TOKEN}\r\nX-Evil: 1"}, "token"),
        ({"token": None}, '"token"'),
        ({"server": ["https://x"]}, '"server"'),
        ({"ca": "/etc/ssl/ca.pem"}, "no PEM certificate"),
        ({"ca": 7}, "no PEM certificate"),
    ],
)
def test_what_is_not_a_plain_credential_is_refused(
    write: Write, fields: dict[str, object], why: str
) -> None:
    write(**fields)
    assert why in refusal()


@pytest.mark.parametrize(
    ("contents", "why"),
    [
        (b"", "no JSON"),
        (b"apiVersion: v1\nkind: Config\n", "no JSON"),
        (b"[]", "no JSON object"),
        (b'{"server": "' + TOKEN.encode(), "no JSON"),
        (b" " * 70_000, "larger than 64 KiB"),
    ],
)
def test_a_file_that_is_no_credential_is_refused(write: Write, contents: bytes, why: str) -> None:
    write(contents)
    assert why in refusal()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_use_is_refused(write: Write, mode: int) -> None:
    write(mode=mode)
    assert "chmod 600" in refusal()


def test_a_file_that_is_not_there_is_named_without_its_folder(
    write: Write, tmp_path: Path
) -> None:
    write().unlink()
    said = refusal()
    assert "north.json" in said
    assert str(tmp_path) not in said


def test_a_folder_in_its_place_is_refused(write: Write) -> None:
    path = write()
    path.unlink()
    path.mkdir()
    assert "can't be read" in refusal()
    shutil.rmtree(path)


@pytest.mark.parametrize("name", ["../north", "north/..", "", "North", "no rth", "-n", "a" * 64])
def test_a_name_that_could_be_a_path_is_refused(write: Write, name: str) -> None:
    write()
    assert "no cluster name" in refusal(name)


def test_the_mode_that_counts_is_that_of_the_file_a_link_leads_to(
    write: Write, tmp_path: Path
) -> None:
    """A mounted Secret's files are links."""
    path = write(mode=0o640)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert "may be read by others" in refusal()


def test_the_mode_that_counts_is_the_opened_files(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who swaps the file once it is open changes nothing."""
    path = write(mode=0o644)
    opened = os.open

    def swapping(name: str, flags: int) -> int:
        monkeypatch.undo()
        number = opened(name, flags)
        path.unlink()
        write()
        return number

    monkeypatch.setattr("clusters.registry.os.open", swapping)
    assert "may be read by others" in refusal()


def test_a_pipe_is_refused_and_not_waited_for(write: Write) -> None:
    path = write()
    path.unlink()
    os.mkfifo(path, 0o600)
    assert "is no plain file" in refusal()
