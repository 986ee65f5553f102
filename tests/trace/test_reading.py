"""The trace's files: what is read from them, and what a bad row is told."""

import gzip
from pathlib import Path

import pytest

from controlplane.trace import reading
from controlplane.trace.reading import BadTrace, NodeRow, PodRow
from tests.trace import files

POD = ("pod-1", 4000, 8192, 1, 460, "", "LS", "Running", 100, 700, 160)


def pods_of(tmp_path: Path, *rows: tuple[object, ...]) -> list[PodRow]:
    return reading.pods(files.write(tmp_path / "pods.csv", files.POD_COLUMNS, rows))


def changed(**columns: object) -> tuple[object, ...]:
    """POD with some columns replaced."""
    named = dict(zip(files.POD_COLUMNS, POD, strict=True))
    return tuple((named | columns).values())


def test_a_node_is_read(tmp_path: Path) -> None:
    path = files.write(tmp_path / "n.csv", files.NODE_COLUMNS, [("n-1", 64000, 262144, 2, "P100")])
    assert reading.nodes(path) == [NodeRow("n-1", 64000, 262144, 2, "P100")]


def test_a_pod_is_read_and_runs_from_its_scheduling_to_its_deletion(tmp_path: Path) -> None:
    assert pods_of(tmp_path, POD) == [PodRow("pod-1", 4000, 8192, 1, 460, (), "LS", 100, 540)]


@pytest.mark.parametrize(
    ("columns", "runs_s"),
    [
        ({"scheduled_time": ""}, 600),
        ({"scheduled_time": 700}, 1),
        ({"scheduled_time": 100, "deletion_time": 100}, 1),
    ],
)
def test_a_pod_that_was_never_scheduled_runs_from_its_creation_and_a_second_at_least(
    tmp_path: Path, columns: dict[str, object], runs_s: int
) -> None:
    assert pods_of(tmp_path, changed(**columns))[0].runs_s == runs_s


def test_pods_come_in_the_order_of_their_arrival(tmp_path: Path) -> None:
    late, early = changed(name="pod-1", creation_time=200), changed(name="pod-2", creation_time=50)
    assert [pod.name for pod in pods_of(tmp_path, late, early)] == ["pod-2", "pod-1"]


def test_models_and_odd_amounts_are_understood(tmp_path: Path) -> None:
    first, second = pods_of(
        tmp_path,
        changed(name="pod-1", gpu_spec="V100M16|V100M32", gpu_milli=1000, num_gpu=2),
        changed(name="pod-2", num_gpu=0, gpu_milli=0, memory_mib=0),
    )
    assert first.models == ("V100M16", "V100M32")
    assert first.requested_milli == 2000
    assert (second.requested_milli, second.memory_mib) == (0, 1)


def test_a_list_with_only_five_columns_is_read(tmp_path: Path) -> None:
    path = files.write(tmp_path / "p.csv.gz", files.POD_COLUMNS[:5], [POD[:5]])
    assert reading.pods(path) == [PodRow("pod-1", 4000, 8192, 1, 460, (), "LS", 0, 1)]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"cpu_milli": "many"}, "cpu_milli has to be a whole number from 1"),
        ({"cpu_milli": "-1"}, "cpu_milli has to be a whole number from 1"),
        ({"memory_mib": "1.5"}, "memory_mib has to be a whole number from 0"),
        ({"num_gpu": "65"}, "num_gpu has to be a whole number from 0 to 64"),
        ({"num_gpu": 2}, "gpu_milli 460 goes with num_gpu 1 only, not 2"),
        ({"gpu_milli": 0}, "gpu_milli is 0 for a pod with GPUs"),
        ({"gpu_milli": 1001}, "gpu_milli has to be a whole number from 0 to 1000"),
        ({"qos": "Best"}, "qos has to be one of LS, BE, Burstable, Guaranteed, not 'Best'"),
        ({"name": "../pod"}, "name has to be a plain name, not '../pod'"),
        ({"creation_time": "now"}, "creation_time has to be a whole number from 0"),
        ({"cpu_milli": "9" * 30}, "cpu_milli has to be a whole number from 1"),
        ({"cpu_milli": "\N{DIGIT ONE}\N{ARABIC-INDIC DIGIT TWO}"}, "cpu_milli has to be"),
    ],
)
def test_a_bad_row_is_one_sentence_with_file_and_line(
    tmp_path: Path, columns: dict[str, object], says: str
) -> None:
    with pytest.raises(BadTrace) as raised:
        pods_of(tmp_path, POD, changed(**columns))
    message = str(raised.value)
    assert message.startswith(f"pods.csv, line 3: {says}")
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sn,cpu_milli\nn,1\n", "n.csv lacks the column memory_mib."),
        ("", "n.csv lacks the column sn."),
        ("sn,cpu_milli,memory_mib,gpu,model\n", "n.csv has no rows."),
        ("sn,cpu_milli,memory_mib,gpu,model\nn,1,1\n", "n.csv, line 2: it has not the 5 columns."),
        (
            "sn,cpu_milli,memory_mib,gpu,model\nn,1,1,0,,x\n",
            "n.csv, line 2: it has not the 5 columns.",
        ),
        (
            "sn,cpu_milli,memory_mib,gpu,model\nn,1,1,2,\n",
            "n.csv, line 2: a node has a model if, and only if, it has GPUs.",
        ),
        (
            "sn,cpu_milli,memory_mib,gpu,model\nn,1,1,0,\nn,1,1,0,\n",
            "n.csv names a node twice.",
        ),
    ],
)
def test_a_file_that_is_no_node_list_is_told_why(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "n.csv"
    path.write_text(text)
    with pytest.raises(BadTrace) as raised:
        reading.nodes(path)
    assert str(raised.value) == says


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"no gzip", "p.csv.gz can't be read: "),
        (gzip.compress(b"name,cpu_milli\n" * 999, mtime=0)[:-20], "p.csv.gz"),
        (gzip.compress(b"\xff\xfe\n", mtime=0), "p.csv.gz"),
    ],
)
def test_a_file_that_is_broken_is_told_so(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "p.csv.gz"
    path.write_bytes(data)
    with pytest.raises(BadTrace) as raised:
        reading.pods(path)
    assert str(raised.value).startswith(says)


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match=r"none\.csv can't be opened: no such file or directory\."):
        reading.nodes(tmp_path / "none.csv")
