"""`berth gate`: what waits for whose word, and giving it. No Django in here."""

import click

from controlplane.cli.arrays import Named, Work
from controlplane.cli.client import Client
from controlplane.cli.remote import print_json, print_table, remote


@click.group()
def gate() -> None:
    """See what waits for your word, and open or refuse it."""


@gate.command(name="list")
@remote
def list_(client: Client, *, output: str) -> None:
    """Gates that wait for you: your own, and those of projects that you administer."""
    found = list(client.items("gates"))
    if output == "json":
        print_json(found)
        return
    print_table(
        ["WORK", "NAME", "GATE", "KIND", "OWNER", "SINCE", "UNTIL"],
        [
            [
                row["workload"] or f"array:{row['array']}",
                row["work"],
                row["name"],
                row["kind"],
                row["owner"],
                row["created_at"],
                row["deadline_at"] or "",
            ]
            for row in found
        ],
    )


@gate.command(name="open")
@click.argument("work", type=Work())
@click.argument("name")
@click.option("--note", default="", help="For who submitted it.")
@remote
def open_(client: Client, *, work: Named, name: str, note: str, output: str) -> None:
    """Open a gate of a workload, or of all of an array."""
    _decide(client, work, name, "open", note, output)


@gate.command()
@click.argument("work", type=Work())
@click.argument("name")
@click.option("--note", required=True, help="Why, for who submitted it.")
@remote
def refuse(client: Client, *, work: Named, name: str, note: str, output: str) -> None:
    """Refuse a gate, which cancels what waits for it."""
    _decide(client, work, name, "refused", note, output)


def _decide(client: Client, work: Named, name: str, state: str, note: str, output: str) -> None:
    body = {"state": state, "note": note}
    made = client.post(f"{work.kind}s", work.id, "gates", name, body=body)
    if output == "json":
        print_json(made)
    else:
        click.echo(f"gate {made['name']} {made['state']}")
