"""A replay's report as text."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from controlplane.trace.report import Report

_BAR = 40


def table(report: Report) -> str:
    parts = [
        _counts(report),
        _allocation(report),
        _cycles(report),
        _tenants(report),
    ]
    # A killed process takes the record of its processor time along.
    if not report["kills"]:
        parts.append(_processes(report))
    return "\n\n".join(["", *parts, ""])


def aligned(rows: Sequence[Sequence[object]]) -> str:
    """Columns of one width each; the first to the left, numbers to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def _counts(report: Report) -> str:
    counts, seconds = report["counts"], report["seconds"]
    times: Counter[str] = Counter(report["kills"])
    killed = ", ".join(f"{times[who]} x {who}" for who in sorted(times))
    return (
        f"{counts['submitted']} submitted, {counts['admitted']} admitted, "
        f"{counts['bound']} bound, {counts['finished']} finished; "
        f"{len(report['kills'])} kills, {len(report['problems'])} problems\n"
        + (f"killed: {killed}\n" if killed else "")
        + f"submitted in {seconds['submit']:.1f} s, last bound after "
        f"{seconds['submit_to_last_bound']:.1f} s, last released after "
        f"{seconds['submit_to_last_release']:.1f} s (clock x{report['speed']:g})\n"
        f"submitted to bound: {report['submitted_to_bound_per_s']:.1f} workloads/s"
    )


def _allocation(report: Report) -> str:
    """Held: from the decision to the release. Running: from the pod's start."""
    most = report["gpus"] * 1000
    top = max((row["held_milli"] for row in report["allocation"]), default=0) or 1
    rows: list[Sequence[object]] = [("day", "GPUs held", "held", "running", "")]
    for row in report["allocation"]:
        held, running = row["held_milli"], row["running_milli"]
        dark = round(_BAR * running / top)
        light = round(_BAR * held / top) - dark
        bar = ("#" * dark + "-" * light).ljust(_BAR)
        rows.append(
            (
                f"{row['day']:.1f}",
                f"{held / 1000:.1f}",
                f"{held / most:.1%}",
                f"{running / most:.1%}",
                bar,
            )
        )
    return (
        f"GPU allocation over the clock's days, of {report['gpus']} "
        f"(# running, - held before and after; a full bar is {top / most:.1%})\n" + aligned(rows)
    )


def _cycles(report: Report) -> str:
    cycles = report["cycles"]
    rows: list[Sequence[object]] = [("", "p50", "p99", "max")]
    for name, unit in (
        ("load", " ms"),
        ("plan", " ms"),
        ("apply", " ms"),
        ("cycle", " ms"),
        ("pending", ""),
        ("admitted", ""),
    ):
        spread = cycles[name]
        rows.append((name, *(f"{spread[key]}{unit}" for key in ("p50", "p99", "max"))))
    return f"{cycles['count']} cycles\n{aligned(rows)}"


def _tenants(report: Report) -> str:
    rows: list[Sequence[object]] = [("tenant", "pods", "GPU-hours", "cost")]
    for slug, row in report["tenants"].items():
        cost = Decimal(row["cost"])
        rows.append((slug, row["pods"], f"{Decimal(row['gpu_hours']):,.2f}", f"{cost:,.2f}"))
    hours = sum(Decimal(row["gpu_hours"]) for row in report["tenants"].values())
    cost = sum((Decimal(row["cost"]) for row in report["tenants"].values()), Decimal(0))
    pods = sum(row["pods"] for row in report["tenants"].values())
    rows.append(("all", pods, f"{hours:,.2f}", f"{cost:,.2f}"))
    return aligned(rows)


def _processes(report: Report) -> str:
    rows: list[Sequence[object]] = [("process", "CPU ms a workload", "peak MiB")]
    processes = sorted(
        report["processes"].items(), key=lambda item: -item[1]["cpu_ms_per_workload"]
    )
    for name, row in processes:
        rows.append((name, f"{row['cpu_ms_per_workload']:.2f}", f"{row['peak_mib']:.0f}"))
    total = sum(row["cpu_ms_per_workload"] for _, row in processes)
    rows.append(("all", f"{total:.2f}", ""))
    return aligned(rows)
