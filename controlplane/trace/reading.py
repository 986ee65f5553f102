"""The trace's CSV files as values. Pure, but for opening the files."""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

NODES_FILE = "openb_node_list_gpu_node.csv"
PODS_FILE = "openb_pod_list_default.csv.gz"
QOS = ("LS", "BE", "Burstable", "Guaranteed")
"""The trace's classes of service, as its authors spell them."""

_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_MOST = 2**40
_MOST_GPUS = 64


class BadTrace(ValueError):
    """A file of the trace can't be used: one sentence that names the file and the line."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


@dataclass(frozen=True, slots=True)
class PodRow:
    """One task. `gpu_milli` are the thousandths of each of its `gpus`; `models` empty accepts any.

    `arrived_s` counts from the trace's start; `runs_s` is how long it ran there, 1 at least.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]
    qos: str
    arrived_s: int
    runs_s: int

    @property
    def requested_milli(self) -> int:
        """Thousandths of a GPU, over all its GPUs."""
        return self.gpus * self.gpu_milli


def nodes(path: Path) -> list[NodeRow]:
    """The nodes in the file's order. Raises BadTrace."""
    found = list(_rows(path, _NODE_COLUMNS, _node))
    if len({node.name for node in found}) != len(found):
        raise BadTrace(f"{path.name} names a node twice.")
    return found


def pods(path: Path) -> list[PodRow]:
    """The pods in the order of their arrival. Raises BadTrace."""
    found = list(_rows(path, _POD_COLUMNS, _pod))
    return sorted(found, key=lambda pod: (pod.arrived_s, pod.name))


def _node(row: Mapping[str, str]) -> NodeRow:
    gpus = _count(row, "gpu", most=_MOST_GPUS)
    model = row["model"].strip()
    if bool(gpus) != bool(model):
        raise ValueError("a node has a model if, and only if, it has GPUs")
    return NodeRow(
        name=_name(row, "sn"),
        cpu_milli=_count(row, "cpu_milli", least=1),
        memory_mib=_count(row, "memory_mib", least=1),
        gpus=gpus,
        model=model,
    )


def _pod(row: Mapping[str, str]) -> PodRow:
    gpus = _count(row, "num_gpu", most=_MOST_GPUS)
    milli = _count(row, "gpu_milli", most=1000)
    if gpus and not milli:
        raise ValueError("gpu_milli is 0 for a pod with GPUs")
    if gpus > 1 and milli != 1000:
        raise ValueError(f"gpu_milli {milli} goes with num_gpu 1 only, not {gpus}")
    # Some pod lists have the first five columns only.
    qos = row.get("qos") or QOS[0]
    if qos not in QOS:
        raise ValueError(f"qos has to be one of {', '.join(QOS)}, not {qos[:40]!r}")
    arrived_s = _count(row, "creation_time") if row.get("creation_time") else 0
    began_s = _count(row, "scheduled_time") if row.get("scheduled_time") else arrived_s
    ended_s = _count(row, "deletion_time") if row.get("deletion_time") else began_s
    return PodRow(
        name=_name(row, "name"),
        cpu_milli=_count(row, "cpu_milli", least=1),
        # A few pods ask for no memory; every pod of Berth asks for some.
        memory_mib=max(1, _count(row, "memory_mib")),
        gpus=gpus,
        gpu_milli=milli if gpus else 0,
        models=tuple(filter(None, (row.get("gpu_spec") or "").split("|"))),
        qos=qos,
        arrived_s=arrived_s,
        runs_s=max(1, ended_s - began_s),
    )


def _name(row: Mapping[str, str], column: str) -> str:
    name = row[column]
    if not name or len(name) > 63 or not name.replace("-", "").replace(".", "").isalnum():
        raise ValueError(f"{column} has to be a plain name, not {name[:40]!r}")
    return name


def _count(row: Mapping[str, str], column: str, *, least: int = 0, most: int = _MOST) -> int:
    text = row[column]
    try:
        value = int(text) if text.isascii() and len(text) < 20 else -1
    except ValueError:
        value = -1
    if not least <= value <= most:
        raise ValueError(
            f"{column} has to be a whole number from {least} to {most}, not {text[:40]!r}"
        )
    return value


def _rows[Row](
    path: Path, columns: tuple[str, ...], read: Callable[[Mapping[str, str]], Row]
) -> Iterator[Row]:
    """Each row as `read` has it; the ValueError of a bad one becomes a sentence."""
    with _opened(path) as file:
        reader = csv.DictReader(file, strict=True)
        try:
            lacking = [name for name in columns if name not in (reader.fieldnames or ())]
            if lacking:
                raise BadTrace(f"{path.name} lacks the column {lacking[0]}.")
            empty = True
            for row in reader:
                empty = False
                if None in row or None in row.values():
                    raise ValueError(f"it has not the {len(reader.fieldnames or ())} columns")
                yield read(row)
        except BadTrace:
            raise
        except (ValueError, csv.Error) as error:
            raise BadTrace(f"{path.name}, line {reader.line_num}: {error}.") from None
        except (OSError, EOFError, zlib.error) as error:
            raise BadTrace(f"{path.name} can't be read: {error}.") from None
    if empty:
        raise BadTrace(f"{path.name} has no rows.")


@contextmanager
def _opened(path: Path) -> Iterator[IO[Any]]:  # Any: gzip.open is typed by its mode only
    opened: Callable[..., IO[Any]] = gzip.open if path.suffix == ".gz" else open
    try:
        file = opened(path, "rt", encoding="utf-8", newline="")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise BadTrace(f"{path} can't be opened: {why}.") from None
    with file:
        yield file
