"""The pure parts of the curve: the batches, the pod list, the published curves, the picture."""

import json
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest

from controlplane.trace import reading
from controlplane.trace.reading import PodRow
from scheduler.core.node.shapes import ANY_MODEL, Shape
from tests.bench import curve
from tests.bench.curve_picture import PANELS, Line, Point, drawn, published
from tests.bench.curve_steps import BATCHES, batches
from tests.bench.report import RESULTS

SVG = "{http://www.w3.org/2000/svg}"
CSV = """trace,policy,arrived_pct,alloc_pct,alloc_sd,seeds
openb_pod_list_cpu050,FGD,90,1.0,0.1,10
openb_pod_list_default,FGD,130,95.391,0.082,10
openb_pod_list_default,FGD,90,89.981,0.052,10
openb_pod_list_default,BestFit,130,93.076,0.134,10
openb_pod_list_default,Random,130,87.47,0.319,10
"""


def _pod(number: int, gpus: int) -> PodRow:
    return PodRow(f"pod-{number}", 1000, 1024, gpus, 1000 if gpus else 0, (), "LS", 0, 1)


def test_a_batch_ends_before_it_would_pass_the_next_part_of_the_gpus() -> None:
    pods = [_pod(number, gpus) for number, gpus in enumerate((0, 2, 1, 2, 0, 1))]
    found = [
        (asked, [pod.name for pod in batch])
        for asked, batch in batches(pods, milli=3000 * BATCHES)
    ]
    assert found == [
        (3000, ["pod-0", "pod-1", "pod-2"]),
        (6000, ["pod-3", "pod-4", "pod-5"]),
    ]


def test_a_pod_list_keeps_the_order_and_names_the_models_that_a_task_takes(
    tmp_path: Path,
) -> None:
    shapes = [
        Shape(1000, 2048, 1, 190, ANY_MODEL),
        Shape(2000, 4096, 2, 1000, 0b10),
        Shape(500, 512, 0, 1000, ANY_MODEL),
    ]
    curve.write(tmp_path / "pods.csv", shapes, ["A10", "T4"])
    found = reading.pods(tmp_path / "pods.csv")
    assert [(pod.cpu_milli, pod.gpus, pod.gpu_milli) for pod in found] == [
        (1000, 1, 190),
        (2000, 2, 1000),
        (500, 0, 0),
    ]
    assert [pod.models for pod in found[:2]] == [("A10", "T4"), ("T4",)]


def test_the_published_curves_are_those_of_the_default_trace_in_order() -> None:
    assert published(CSV) == [
        Line("FGD, published", [Point(90.0, 89.981), Point(130.0, 95.391)]),
        Line("BestFit, published", [Point(130.0, 93.076)]),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CSV.replace("alloc_pct", "allocated"), "lack the column alloc_pct"),
        (CSV.replace("BestFit", "WorstFit"), "no row of BestFit for openb_pod_list_default"),
    ],
)
def test_other_published_curves_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        published(text)


def test_the_picture_has_every_line_in_both_panels_at_its_place() -> None:
    lines = [Line("Ours & all", [Point(0.0, 0.0), Point(130.0, 95.5)]), *published(CSV)]
    picture = ElementTree.fromstring(  # noqa: S314  # our own
        drawn(lines, seed=7, day=date(2026, 11, 21))
    )
    titled = picture.findtext(f"{SVG}title")
    assert titled is not None
    assert titled.endswith("seed 7, 2026-11-21")
    spots = [
        (float(spot.attrib["cx"]), float(spot.attrib["cy"]), spot.findtext(f"{SVG}title"))
        for spot in picture.iter(f"{SVG}circle")
    ]
    whole, near = PANELS
    across, bottom = whole.left + whole.width, whole.top + whole.height
    assert spots[0] == (whole.left, bottom, "Ours & all: 0.00 % of 0.0 %")
    assert spots[1] == (across, bottom - 0.955 * whole.height, "Ours & all: 95.50 % of 130.0 %")
    in_near = [spot for spot in spots if near.left <= spot[0]]
    assert [said for *_, said in in_near] == [
        "Ours & all: 95.50 % of 130.0 %",
        "FGD, published: 89.98 % of 90.0 %",
        "FGD, published: 95.39 % of 130.0 %",
        "BestFit, published: 93.08 % of 130.0 %",
    ]
    words = [text.text for text in picture.iter(f"{SVG}text")]
    assert "FGD, published: 95.39 % at 130 %" in words


def test_the_picture_that_is_kept_shows_the_figures_that_are_kept() -> None:
    picture = (RESULTS / "openb_curve.svg").read_text()
    metrics = json.loads((RESULTS / "core.json").read_text())["metrics"]
    ours = metrics["openb_path_alloc_130_pct"]["value"]
    assert f"Berth: {ours:.2f} % at 130 %" in picture
