"""The demo's data folder: what makes it unusable is said in one sentence; a reset is careful.

What must not live here: running demos.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from controlplane.demo import logins
from controlplane.demo.folder import Folder
from controlplane.embedded.process import StartFailed


@pytest.fixture
def folder(data: Path) -> Iterator[Folder]:
    opened = Folder.open(data)
    yield opened
    opened.close()


def refusal(path: Path) -> str:
    with pytest.raises(StartFailed) as caught:
        Folder.open(path)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_file_in_the_way_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert "data" in refusal(tmp_path / "data")


def test_a_folder_that_can_not_be_made_is_one_sentence() -> None:
    assert refusal(Path("/proc/berth")).startswith("The folder /proc/berth can't be used: ")


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    assert "was not made by a demo" in refusal(tmp_path)


def test_a_folder_that_is_open_is_refused(folder: Folder) -> None:
    folder.note_running("http://127.0.0.1:8000/")
    message = refusal(folder.path)
    assert f"already runs as process {os.getpid()} at http://127.0.0.1:8000/" in message


def test_a_nearly_full_disk_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        total: int
        used: int
        free: int

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2**30, 2**30, 12 * 2**20))
    message = refusal(tmp_path / "data")
    assert message.startswith("The disk of ")
    assert "12 MiB are free and 300 MiB are needed" in message


def test_a_reset_forgets_what_a_demo_wrote_and_nothing_else(folder: Folder) -> None:
    folder.postgres.mkdir()
    (folder.postgres / "PG_VERSION").write_text("18\n")
    folder.tokens.write_text("{}")
    folder.simulator_state("north").write_text("{}")
    secret = folder.secret()
    (folder.path / "notes.txt").write_text("mine")
    folder.reset()
    left = sorted(path.name for path in folder.path.iterdir())
    assert left == ["lock", "logs", "mail", "notes.txt", "static"]
    assert folder.secret() != secret


def test_the_logins_are_shown_with_the_password() -> None:
    lines = logins.table().splitlines()
    assert len(lines) == 7
    assert lines[1].split() == ["ada", logins.PASSWORD, "owner", "of", "Vision", "Lab"]
    assert all(line == line.rstrip() for line in lines)
