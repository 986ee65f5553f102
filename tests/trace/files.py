"""Small traces as files, drawn from a seed."""

import csv
import gzip
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip


def write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """A CSV, compressed if its name says so."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def nodes(path: Path, count: int = 20) -> Path:
    """Half with eight G2, the rest with two T4, and one without a GPU."""
    rows: list[tuple[object, ...]] = [("node-cpu", 64000, 262144, 0, "")]
    for index in range(1, count):
        if index % 2:
            rows.append((f"node-{index:02}", 96000, 393216, 8, "G2"))
        else:
            rows.append((f"node-{index:02}", 64000, 262144, 2, "T4"))
    return write(path, NODE_COLUMNS, rows)


def pods(path: Path, count: int = 150, *, free: bool = True) -> Path:
    """CPU-only ones, shares, whole GPUs and eights; some accept one model only.

    With `free` False all do, so that what each costs does not depend on what was free.
    """
    draw = random.Random(7)
    rows: list[tuple[object, ...]] = []
    for index in range(count):
        gpus = draw.choices((0, 1, 2, 8), (15, 75, 7, 3))[0]
        milli = draw.choice((250, 500, 810, 1000, 1000)) if gpus == 1 else 1000 * (gpus > 0)
        spec = draw.choice(("", "", "G2", "T4|G2")) if gpus in (1, 2) else ""
        if not free:
            spec = draw.choice(("G2", "G2", "G2", "T4")) if gpus in (1, 2) else "G2"
        arrived_s = index * 1000
        rows.append(
            (
                f"pod-{index:03}",
                draw.randrange(1000, 8001, 1000),
                draw.choice((0, 1024, 8192)),
                gpus,
                milli,
                spec,
                draw.choices(("LS", "BE", "Burstable", "Guaranteed"), (50, 40, 7, 3))[0],
                "Succeeded",
                arrived_s,
                arrived_s + draw.randrange(0, 200_000),
                arrived_s if draw.random() < 0.9 else "",
            )
        )
    return write(path, POD_COLUMNS, rows)
