"""`berth priority`: the order of what waits. No Django in here."""

import click

from controlplane.cli.arrays import Named, Work
from controlplane.cli.client import Client
from controlplane.cli.manifest import PRIORITIES
from controlplane.cli.remote import print_work, remote


@click.command()
@click.argument("work", type=Work())
@click.argument("priority_class", required=False, type=click.Choice(PRIORITIES))
@click.option("--first", "to", flag_value="first", help="Before what waits of that priority.")
@click.option("--last", "to", flag_value="last", help="Behind what waits of that priority.")
@remote
def priority(
    client: Client, *, work: Named, priority_class: str | None, to: str | None, output: str
) -> None:
    """Give a workload that waits, or what waits of an array, another priority, or put it first or
    last: of its submitter's in the project, or of all if you administer that."""
    if priority_class is None and to is None:
        raise click.UsageError("Say a priority, --first or --last, or both.")
    body = {"priority_class": priority_class, "to": to}
    made = client.post(f"{work.kind}s", work.id, "priority", body=body)
    print_work(work.kind, made, output)
