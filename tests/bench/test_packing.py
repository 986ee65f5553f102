"""A list of pods from outside is read, or said to be wrong and where."""

from pathlib import Path

import pytest

from scheduler.core.node.shapes import ANY_MODEL
from tests.bench import packing

HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"
GOOD = "p0,6000,8192,1,470,V100M16|V100M32"


def written(folder: Path, *lines: str) -> Path:
    path = folder / "pods.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_list_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, HEAD, GOOD, "p1,1000,512,0,,")
    monkeypatch.setenv("TRACE", str(path))
    assert packing.lists(variants=False) == [path]
    first, second = packing.tasks(path, {"V100M16": 0, "V100M32": 2})
    assert (first.gpu_milli, first.models) == (470, 0b101)
    assert second.models == ANY_MODEL


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((HEAD, GOOD, "p1,six,1,1,1000,"), "line 3: cpu_milli is 'six'; right would be a whole"),
        ((HEAD, "p0,1,1,-1,1000,"), "line 2: num_gpu is '-1'"),
        ((HEAD, "p0,1,1,1,1001,"), "line 2: gpu_milli is '1001'; right would be .* 0 to 1000"),
        ((HEAD, "p0,1,1,1,0.5,"), "gpu_milli is '0.5'"),
        (("name,num_gpu", "p0,1"), "line 2: cpu_milli is None"),
        ((HEAD,), "has no pod that asks for a GPU"),
        ((HEAD, "p0,1,1,0,0,"), "has no pod that asks for a GPU"),
    ],
)
def test_what_is_wrong_in_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...], told: str
) -> None:
    monkeypatch.setenv("TRACE", str(written(tmp_path, *lines)))
    with pytest.raises(packing.BadList, match=told):
        packing.lists(variants=False)
