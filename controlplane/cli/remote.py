"""Commands that talk to a Berth server. No Django in here."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO, Concatenate
from uuid import UUID

import click

from controlplane.cli import arrays, explanation, manifest, together
from controlplane.cli.arrays import Named
from controlplane.cli.client import Client, SaidNo
from controlplane.cli.flavors import ISOLATIONS, Memory, choose, gpu_memory_mib, wish
from controlplane.cli.gates import Declared
from controlplane.cli.login import client_for
from controlplane.kernel.document import MAX_BYTES, Refused
from scheduler.core.failures import REQUEUE_S
from scheduler.services import specs

type Json = Any  # JSON values

_POD_SET = "/pod_sets/0"
MINUTES = click.IntRange(REQUEUE_S[0] // 60, REQUEUE_S[1] // 60)


def remote[**P, R](
    command: Callable[Concatenate[Client, P], R],
) -> Callable[..., R]:
    """The options of every command that needs a server, which gets a client of it."""

    @wraps(command)
    def called(server: str | None, token: str | None, *args: P.args, **kwargs: P.kwargs) -> R:
        return command(client_for(server, token), *args, **kwargs)

    options = [
        click.option("--server", envvar="BERTH_SERVER", help="Or BERTH_SERVER, or berth login."),
        click.option("--token", envvar="BERTH_TOKEN", help="Or BERTH_TOKEN, or berth login."),
        click.option(
            "-o", "--output", type=click.Choice(["table", "json"]), default="table",
            show_default=True,
        ),
    ]  # fmt: skip
    for option in reversed(options):
        called = option(called)
    return called


@click.command()
@click.option("-f", "--file", "source", type=click.File("rb"), required=True, help="- is stdin.")
@click.option("--project", required=True, help="Id or slug.")
@click.option("--flavor", "flavors", multiple=True, help="Accepted flavor; repeat in your order.")
@click.option("--any-order", is_flag=True, help="One --flavor is as welcome as another.")
@click.option(
    "--least-gpu-memory", "least_memory", type=Memory(), metavar="SIZE",
    help="Any whole GPU with so much, as 80GB, behind each --flavor; later ones, too.",
)  # fmt: skip
@click.option("--vendor", "vendors", multiple=True, help="The same of this maker, as nvidia.")
@click.option(
    "--gpu-memory", type=Memory(rounds_up=True), metavar="SIZE",
    help="The least share of one GPU that has so much, as 10GB.",
)  # fmt: skip
@click.option(
    "--least-isolation", type=click.Choice(ISOLATIONS),
    help="No flavor that keeps those who share a GPU less apart.",
)  # fmt: skip
@click.option("--cluster", "clusters", multiple=True, help="Accepted cluster; any when left out.")
@click.option("--within", metavar="LEVEL", help="All pods in one such domain, as rack, or wait.")
@click.option("--near", metavar="LEVEL", help="All pods in one such domain if that can be.")
@click.option("--groups-within", type=together.GroupsOf(), help="Each N pods in one, or wait.")
@click.option("--groups-near", type=together.GroupsOf(), help="Each N in one if that can be.")
@click.option("--priority", type=click.Choice(manifest.PRIORITIES))
@click.option("--move-to-better", is_flag=True, help="Stop it for an earlier --flavor, if free.")
@click.option("--not-preemptible", is_flag=True, help="It keeps its place, and does not borrow.")
@click.option(
    "--notice", type=click.IntRange(0, specs.MAX_NOTICE_S), metavar="SECONDS",
    help="Told so long before it is stopped for the work of others.",
)  # fmt: skip
@click.option(
    "--requeue-after-loss", type=MINUTES, metavar="MINUTES",
    help="Start it elsewhere when its cluster has been silent so long; else it waits for that.",
)  # fmt: skip
@click.option("--array", type=arrays.Size(), help="So many of it, MOST of them at once.")
@click.option("--after-success", type=arrays.Work(), multiple=True, help="Start after this.")
@click.option("--after-end", type=arrays.Work(), multiple=True, help="The same however it ends.")
@click.option(
    "--after-failure", type=arrays.Work(), multiple=True,
    help="The same if it fails or is cancelled.",
)  # fmt: skip
@click.option("--by-index", is_flag=True, help="Each element after the one of its index there.")
@click.option("--hold", is_flag=True, help="Hold it, not cancel it, if that can't come any more.")
@click.option(
    "--gate", "gates", type=Declared(), multiple=True,
    help="OWNER has to open it first, and may refuse; KIND is data, approval, budget or other.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Ask what would become of it; submit nothing.")
@click.option("--print", "print_only", is_flag=True, help="Print what would be sent.")
@remote
def submit(
    client: Client,
    /,
    *,
    source: BinaryIO,
    project: str,
    flavors: tuple[str, ...],
    any_order: bool,
    least_memory: int | None,
    vendors: tuple[str, ...],
    gpu_memory: int | None,
    least_isolation: str | None,
    clusters: tuple[str, ...],
    within: str | None,
    near: str | None,
    groups_within: together.Groups | None,
    groups_near: together.Groups | None,
    priority: str | None,
    move_to_better: bool,
    not_preemptible: bool,
    notice: int | None,
    requeue_after_loss: int | None,
    array: dict[str, int] | None,
    by_index: bool,
    hold: bool,
    gates: tuple[Json, ...],
    dry_run: bool,
    print_only: bool,
    output: str,
    **after: tuple[Named, ...],
) -> None:
    """Submit a plain Kubernetes Job or Pod manifest as a workload.

    What Berth does not accept of it is named line by line, and then nothing is submitted. A Job
    without backoffLimit is accepted with a note: Berth tries again what its cluster did, not what
    the work did.
    """
    file = Path(getattr(source, "name", "manifest")).name
    try:
        read = manifest.read(source.read(MAX_BYTES + 1))
    except Refused as error:
        lines = "\n".join(_plain(f"{file}: {each}") for each in error.refusals)
        raise click.ClickException(f"the manifest is not accepted:\n{lines}") from error
    for note in read.notes:
        click.echo(_plain(f"Note: {file}: {note}"), err=True)
    body = {"project": project_id(client, project), **read.body}
    wished, asked_mib = wish(read, least_memory, vendors), gpu_memory_mib(read, gpu_memory)
    if flavors or wished is None:
        known, by_memory = list(client.items("flavors")), asked_mib is not None
        of = {} if flavors else client.get("projects", body["project"])
        body["pod_sets"][0]["flavors"] = choose(
            read, known, flavors, preferred=of.get("preferred_flavors", ()), by_memory=by_memory
        )
    if any_order:
        if not flavors:
            raise click.UsageError("--any-order is said of what --flavor names, which is nothing.")
        body["pod_sets"][0]["any_order"] = True
    if asked_mib is not None:
        body["pod_sets"][0]["gpu_memory_mib"] = asked_mib
    if least_isolation:
        body["pod_sets"][0]["least_isolation"] = least_isolation
    if wished is not None:
        body["pod_sets"][0]["wish"] = wished
    if clusters:
        body["clusters"] = list(clusters)
    bound = together.put(
        body, within=within, near=near, groups_within=groups_within, groups_near=groups_near
    )
    if priority:
        body["priority_class"] = priority
    if move_to_better:
        body["move_to_better"] = True
    if not_preemptible:
        body["preemptible"] = False
    if notice is not None:
        body["notice_s"] = notice
    if requeue_after_loss is not None:
        body["cluster_loss_requeue_s"] = requeue_after_loss * 60
    if needs := arrays.needs(after, by_index=by_index, hold=hold):
        body["depends_on"] = needs
    if gates:
        body["gates"] = list(gates)
    if array:
        body |= array
    if print_only:
        print_json(body)
        return
    places = {pointer: f"{file}: {place}" for pointer, place in read.places.items()}
    options = {
        "/project": "--project",
        "/clusters": "--cluster",
        "/gates": "--gate",
        f"{_POD_SET}/any_order": "--any-order",
        f"{_POD_SET}/least_isolation": "--least-isolation",
        **arrays.OPTIONS,
        **bound,
    }
    options |= {f"{_POD_SET}/flavors": "--flavor"} if flavors else {}
    options |= {f"{_POD_SET}/gpu_memory_mib": "--gpu-memory"} if gpu_memory else {}
    options |= {f"{_POD_SET}/wish": "--least-gpu-memory", f"{_POD_SET}/wish/vendors": "--vendor"}
    try:
        if array and not dry_run:
            made = client.post("arrays", body=body)
        else:
            made = client.post("workloads", *(["dry-run"] if dry_run else []), body=body)
    except SaidNo as error:
        raise _in_terms_of(places | options, error) from error
    if output == "json":
        print_json(made)
    elif dry_run:
        _print_explanation(made)
    elif array:
        click.echo(f"array {made['id']}: {arrays.counts(made)}")
    else:
        click.echo(f"workload {made['id']} {made['state']}")


@click.command()
@click.argument("work", type=arrays.Work(), required=False)
@click.option("--project", help="Id or slug.")
@click.option("--state", help="One or several, with commas between.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@remote
def get(
    client: Client,
    *,
    work: Named | None,
    project: str | None,
    state: str | None,
    limit: int,
    output: str,
) -> None:
    """Show one workload or array, or the newest ones."""
    if work is not None and work.kind == "array":
        found = client.get("arrays", work.id)
        wanted = project_id(client, project) if project else None
        elements = client.get(
            "workloads", array=work.id, project=wanted, state=state, limit=str(limit)
        )
        rows = [{**row, "array": None} for row in elements["items"]]
    elif work is not None:
        found = client.get("workloads", work.id)
        rows = [{**found, "array": None}]
    else:
        wanted = project_id(client, project) if project else None
        found = client.get("workloads", project=wanted, state=state, limit=str(limit))
        rows = found["items"]
    if output == "json":
        print_json(found)
        return
    print_table(
        ["ID", "NAME", "STATE", "GPUS", "FLAVORS", "SUBMITTED", "WHY"],
        [
            [*_called(row), row["gpus"], ",".join(row["flavors"]), row["submitted_at"], _why(row)]
            for row in rows
        ],
    )  # fmt: skip


@click.command()
@click.option("--project", required=True, help="Id or slug.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@remote
def queue(client: Client, *, project: str, limit: int, output: str) -> None:
    """Show what waits in a project, in order, and why."""
    found = client.get("queues", project_id(client, project), limit=str(limit))
    if output == "json":
        print_json(found)
        return
    print_table(
        ["#", "WORKLOAD", "NAME", "GPUS", "STARTS IN", "AS OF", "WHY"],
        [
            [row["position"], row["workload"], row["name"], row["gpus"], _starts(row), _as_of(row),
             _why(row)]
            for row in found["items"]
        ],
    )  # fmt: skip


@click.command()
@click.argument("workload", type=click.UUID)
@remote
def explain(client: Client, *, workload: UUID, output: str) -> None:
    """Say why a workload waits, check by check, and what would help."""
    found = client.get("workloads", str(workload), "explanation")
    if output == "json":
        print_json(found)
    else:
        _print_explanation(found)


@click.command()
@click.argument("work", type=arrays.Work())
@remote
def cancel(client: Client, *, work: Named, output: str) -> None:
    """Stop a workload, or all of an array."""
    made = client.post(f"{work.kind}s", work.id, "cancel")
    print_work(work.kind, made, output)


@click.command()
@click.argument("work", type=arrays.Work())
@remote
def release(client: Client, *, work: Named, output: str) -> None:
    """Let a workload, or an array, wait no more for ends that can't come."""
    made = client.post(f"{work.kind}s", work.id, "release")
    print_work(work.kind, made, output)


def print_work(kind: str, made: Json, output: str) -> None:
    if output == "json":
        print_json(made)
    elif kind == "array":
        click.echo(f"array {made['id']}: {arrays.counts(made)}")
    else:
        click.echo(f"workload {made['id']} {made['state']}")


def project_id(client: Client, wanted: str) -> str:
    """The id of a project given by id or slug (`tenant/project` when two tenants share it)."""
    try:
        return str(UUID(wanted))
    except ValueError:
        pass
    tenant, _, slug = wanted.rpartition("/")
    tenants = {row["id"]: row["slug"] for row in client.items("tenants")} if tenant else {}
    found = [
        row["id"]
        for row in client.items("projects")
        if row["slug"] == slug and (not tenant or tenants.get(row["tenant"]) == tenant)
    ]
    if len(found) != 1:
        why = "There is no project" if not found else "Several tenants have a project"
        raise click.UsageError(f"{why} {wanted!r}; give its id, or tenant/project.")
    return str(found[0])


def _in_terms_of(places: Mapping[str, str], error: SaidNo) -> click.ClickException:
    """The refusal with the lines and options that its pointers mean."""
    if not error.faults:
        return error
    lines = [f"{_place(places, pointer)}: {message}" for pointer, message in error.faults]
    return click.ClickException("\n".join(map(_plain, [f"{error.title}:", *lines])))


def _place(places: Mapping[str, str], pointer: str) -> str:
    """Where the part at `pointer` comes from, or else what it is in."""
    within = pointer
    while within and within not in places:
        within = within.rpartition("/")[0]
    return places.get(within, pointer or "-")


def _called(row: Json) -> tuple[str, str, str]:
    """Id, name and state, of an array where the row stands for one."""
    array = row["array"]
    if array is None:
        return row["id"], row["name"], row["state"]
    return f"array:{array['id']}", array["name"], arrays.counts(array)


def _why(row: Json) -> str:
    return row["reason"]["text"] if row["reason"] else ""


def _starts(row: Json) -> str:
    made = row["estimate"]
    if not made or made["p50_s"] is None:
        return "no basis"
    late = f"-{made['p90_s'] // 60}" if made["p90_s"] is not None else "+"
    return f"{made['p50_s'] // 60}{late} min"


def _as_of(row: Json) -> str:
    """From when the minutes count."""
    made = row["estimate"]
    return datetime.fromisoformat(made["as_of"]).isoformat(timespec="seconds") if made else ""


def _print_explanation(answer: Json) -> None:
    for line in explanation.lines(answer):
        click.echo(_plain(line))


def print_json(value: Json) -> None:
    click.echo(json.dumps(value, indent=2))


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their content; what a server sends can't steer the terminal."""
    cells = [list(head)] + [[_plain(value) for value in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def _plain(value: object) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in str(value))
