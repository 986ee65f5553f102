"""The figures of a replay as JSON, and the comparison of two."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from controlplane.trace import facts
from controlplane.trace.plan import Plan
from controlplane.trace.usage import Usage

type Report = dict[str, Any]  # Any: JSON values

ROWS = 20
_ROUNDED = Decimal("0.000001")
"""A charge is rounded to this, one usage interval at a time."""


def gather(
    *,
    plan: Plan,
    gpus: int,
    submit_s: float,
    usages: tuple[Mapping[str, Usage], Mapping[str, Usage]],
    kills: Sequence[str],
    problems: Sequence[str],
) -> Report:
    """Everything that the table shows and a benchmark keeps. Call it once all has ended."""
    times = facts.times()
    counted = facts.states()
    total = sum(counted.values())
    bound_s = (times.bound_at - times.submitted_at) / timedelta(seconds=plan.speed)
    return {
        "speed": plan.speed,
        "price": plan.price,
        "counts": {
            "submitted": total,
            "admitted": facts.reached("ADMITTED"),
            "bound": facts.reached("BOUND"),
            "finished": counted.get("SUCCEEDED", 0),
        },
        "seconds": {
            "submit": round(submit_s, 3),
            "submit_to_last_bound": round(bound_s, 3),
            "submit_to_last_release": round(
                (times.released_at - times.submitted_at) / timedelta(seconds=plan.speed), 3
            ),
        },
        "submitted_to_bound_per_s": round(total / bound_s, 2),
        "gpus": gpus,
        "allocation": _allocation(times),
        "cycles": _cycles(),
        "tenants": {
            slug: {
                "pods": spend.pods,
                "gpu_units": spend.gpu_units,
                "cpu_units": spend.cpu_units,
                "gpu_hours": f"{facts.hours(spend.gpu_units):.6f}",
                "cost": str(spend.cost),
            }
            for slug, spend in facts.spend().items()
        },
        "charges": facts.charges(),
        "processes": _processes(*usages, total),
        "kills": list(kills),
        "problems": list(problems),
    }


def _allocation(times: facts.Times) -> list[Report]:
    moments = facts.moments(times.submitted_at, times.released_at, ROWS)
    return [
        {
            "day": round((at - times.submitted_at) / timedelta(days=1), 2),
            "held_milli": held,
            "running_milli": running,
        }
        for at, held, running in facts.held(moments)
    ]


def _cycles() -> Report:
    rows = facts.cycles()
    columns = {
        "load": [row[0] for row in rows],
        "plan": [row[1] for row in rows],
        "apply": [row[2] for row in rows],
        "cycle": [sum(row[:3]) for row in rows],
        "pending": [row[3] for row in rows],
        "admitted": [row[4] for row in rows],
    }
    spread = {name: _spread(values) for name, values in columns.items()}
    return {"count": len(rows), **spread}


def _spread(values: Sequence[int]) -> Report:
    ordered = sorted(values) or [0]
    return {
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
        "max": ordered[-1],
    }


def _processes(
    before: Mapping[str, Usage], after: Mapping[str, Usage], total: int
) -> dict[str, Report]:
    """Milliseconds of processor a workload, between submission and end, and peak memory."""
    return {
        name: {
            "cpu_ms_per_workload": round(
                (used.cpu_s - (before[name].cpu_s if name in before else 0.0)) * 1000 / total, 3
            ),
            "peak_mib": round(used.peak_mib, 1),
        }
        for name, used in after.items()
    }


def compare(report: Report, reference: Report) -> tuple[str, list[str]]:
    """The final sums of two replays of the same pods beside each other, and what differs.

    GPU-seconds have to agree to the microsecond. So have costs where all models cost the same in
    both, but for their rounding: where full hours cut a run into intervals depends on when it
    began. With a price a model a cost depends on which was free, and is shown but not judged.
    """
    lines = [f"{'sum':<28}{'reference':>28}{'this run':>28}"]
    differences = []
    priced_alike = report["price"] == reference["price"] != ""
    slack = _ROUNDED * (report["charges"] + reference["charges"])
    for name, before, now in _sums(reference, report):
        money = isinstance(before, Decimal)
        if money and not priced_alike:
            lines.append(f"{name:<28}{before!s:>28}{now!s:>28}  not judged")
            continue
        same = abs(now - before) <= slack if money else before == now
        verdict = "" if same else "  DIFFERS"
        lines.append(f"{name:<28}{before!s:>28}{now!s:>28}{verdict}")
        if not same:
            differences.append(name)
    lines.append("the same sums" if not differences else f"different: {', '.join(differences)}")
    return "\n".join(lines), differences


def _sums(reference: Report, report: Report) -> list[tuple[str, Any, Any]]:  # Any: int or Decimal
    found: list[tuple[str, Any, Any]] = [  # Any: as above
        (name, reference["counts"][name], report["counts"][name])
        for name in ("submitted", "finished")
    ]
    for slug, then in reference["tenants"].items():
        now = report["tenants"].get(slug, {"gpu_units": 0, "cpu_units": 0, "cost": "0"})
        for key, word in (("gpu_units", "GPU"), ("cpu_units", "core")):
            found.append((f"{slug}: {word} thousandth-us", then[key], now[key]))
        found.append((f"{slug}: cost", Decimal(then["cost"]), Decimal(now["cost"])))
    return found
