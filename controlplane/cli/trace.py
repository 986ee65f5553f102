"""`berth import-trace`: replays a cluster trace through a Berth of its own."""

import sys
from pathlib import Path

import click

from controlplane.trace import reading
from controlplane.trace.plan import SPEED, Plan
from controlplane.trace.run import run

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("import-trace")
@click.argument("folder", type=_FOLDER, metavar="DIR")
@click.option("--nodes", type=_FILE, help=f"Instead of DIR/{reading.NODES_FILE}.")
@click.option("--pods", type=_FILE, help=f"Instead of DIR/{reading.PODS_FILE}.")
@click.option("--limit", type=click.IntRange(1), help="Only the first N pods to arrive.")
@click.option(
    "--speed",
    type=click.FloatRange(1),
    default=SPEED,
    show_default=True,
    help="Seconds of the trace that pass in one.",
)
@click.option("--run-for", type=click.IntRange(1), help="Seconds that each pod runs instead.")
@click.option(
    "--price",
    type=click.FloatRange(0, min_open=True),
    help="One price per GPU and hour for every model: then costs do not depend on which was free.",
)
@click.option(
    "--kill", "kills", type=click.IntRange(0), default=0, help="kill -9 N of Berth's processes."
)
@click.option("--seed", type=int, default=1, help="Of the kills.")
@click.option("--json", "report", type=click.Path(path_type=Path), help="Write the figures here.")
@click.option("--reference", type=_FILE, help="Compare the sums with this earlier --json file.")
@click.option("--keep", is_flag=True, help="Keep Berth running after it, until Ctrl-C.")
def import_trace(
    folder: Path,
    nodes: Path | None,
    pods: Path | None,
    limit: int | None,
    speed: float,
    run_for: int | None,
    price: float | None,
    kills: int,
    seed: int,
    report: Path | None,
    reference: Path | None,
    keep: bool,
) -> None:
    """Replay the openb trace in DIR through a Berth of its own.

    Its nodes become one simulated cluster, its pods workloads of four tenants, by class of
    service. Prints what became of them; exits with 0 when nothing was booked twice and every
    GPU-second was metered once.
    """
    plan = Plan(
        nodes=str((nodes or folder / reading.NODES_FILE).absolute()),
        pods=str((pods or folder / reading.PODS_FILE).absolute()),
        limit=limit,
        speed=speed,
        runs_s=run_for,
        price="" if price is None else str(price),
        kills=kills,
        seed=seed,
        report=str(report.absolute()) if report else "",
        reference=str(reference.absolute()) if reference else "",
    )
    sys.exit(run(plan, keep=keep))
