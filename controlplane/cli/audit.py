"""`berth verify-audit`: for who runs Berth, beside its database."""

import os
from pathlib import Path

import click
import django


@click.command("verify-audit")
@click.option(
    "--anchor",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Compare with the ends of the chains that are stored here, and store today's.",
)
def verify_audit(anchor: Path | None) -> None:
    """Say whether the audit is what was written.

    Reads the database that DATABASE_URL names, and changes nothing. Exits with 1 and names the
    first row that was changed, taken away or put in. That rows were cut off at the end shows by
    an anchor alone: keep that file where nobody of the database writes.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings.dev")
    django.setup()
    from django.core.management import CommandError, call_command  # needs the settings

    try:
        call_command("verify_audit", anchor=anchor)
    except CommandError as error:
        raise click.ClickException(str(error)) from error
