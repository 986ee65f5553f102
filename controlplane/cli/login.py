"""Where a sign-in is kept between commands, and `berth login`, which keeps one. No Django here."""

import json
import os
import stat
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from controlplane.cli.client import Client


@dataclass(frozen=True, slots=True)
class Login:
    """A server's address and an API token of it."""

    server: str
    token: str


def path() -> Path:
    """The file that holds it: `berth/login.json` in the user's folder of settings."""
    named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # Its specification: a path that is not absolute does not count.
    return (named if named.is_absolute() else Path.home() / ".config") / "berth" / "login.json"


def kept() -> Login | None:
    """What the last `berth login` kept, None without one.

    Raises click.ClickException for a file that others may read, or that is not one of ours.
    """
    file = path()
    try:
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise click.ClickException(
                f"{file} can be read by others: chmod 600 it, and revoke the token that it holds."
            )
        found = json.loads(file.read_bytes())
        server, token = found["server"], found["token"]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise click.ClickException(f"{file} can't be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{file} holds no login: run `berth login` again.") from error
    return Login(str(server), str(token))


def keep(login: Login) -> Path:
    """Write it where only the user can read it, in one step; the file's path comes back.

    Raises click.ClickException where that can't be.
    """
    file = path()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # As mkstemp makes it, nobody else can read it.
        with tempfile.NamedTemporaryFile(
            "w", dir=file.parent, delete=False, encoding="utf-8"
        ) as made:
            json.dump(asdict(login), made)
        Path(made.name).replace(file)
    except OSError as error:
        raise click.ClickException(f"{file} can't be written: {error.strerror}.") from error
    return file


def client_for(server: str | None, token: str | None) -> Client:
    """What was given, by option or environment, completed from what `berth login` kept.

    A kept token goes to its own server only. Raises click.UsageError when something is missing.
    """
    if server and token:
        return Client(server=server, token=token)
    last = kept()
    if last is None:
        missing = "--token or BERTH_TOKEN" if server else "--server or BERTH_SERVER"
        raise click.UsageError(f"Not signed in: run `berth login`, or give {missing}.")
    if server and not token and server.rstrip("/") != last.server:
        raise click.UsageError(
            f"The kept token is for {last.server}, not for {server}: "
            f"run `berth login --server {server}`, or give --token or BERTH_TOKEN."
        )
    return Client(server=server or last.server, token=token or last.token)


@click.command()
@click.option(
    "--server",
    envvar="BERTH_SERVER",
    prompt="Server",
    help="The portal's address. Or BERTH_SERVER.",
)
@click.option(
    "--token", envvar="BERTH_TOKEN", prompt="API token (made on the portal under API tokens)",
    hide_input=True, help="Asked for when left out. Or BERTH_TOKEN.",
)  # fmt: skip
def login(*, server: str, token: str) -> None:
    """Keep a server and an API token for the other commands.

    The token is tried first. It lies in a file of your settings folder that only you can read;
    --server, --token and their environment variables win over it.
    """
    token = token.strip()
    me = Client(server=server, token=token).get("me")
    file = keep(Login(server.rstrip("/"), token))
    click.echo(f"Signed in to {server.rstrip('/')} as {me['username']}; kept in {file}.")
