"""The charts' figures, and that their templates draw them. No database."""

from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import pytest
from django.template.loader import render_to_string

from controlplane.kernel import charts, device_map
from controlplane.kernel.charts import Series
from controlplane.kernel.device_map import Cluster, Device, Holding, Node


def euro(value: Decimal) -> str:
    return f"€{value:.0f}"


def stack(*series: Series, days: int = 2) -> charts.StackedBars:
    labels = [f"{n + 1} Nov" for n in range(days)]
    return charts.stacked_bars(id="s", title="Spend", labels=labels, series=series, unit=euro)


def values(*numbers: int) -> list[Decimal]:
    return [Decimal(number) for number in numbers]


def test_layers_lie_on_each_other_from_the_bottom() -> None:
    chart = stack(Series("H100", values(60, 0)), Series("A30", values(20, 40)))
    first, second = chart.columns
    assert [(s.y, s.height, s.tone) for s in first.segments] == [
        ("25%", "75%", 1),
        ("0%", "25%", 2),
    ]
    assert [(s.y, s.height) for s in second.segments] == [("50%", "50%")]
    assert [line.label for line in chart.grid] == ["€20", "€40", "€60", "€80"]
    assert chart.total == "€120"


def test_the_table_holds_what_the_picture_shows() -> None:
    chart = stack(Series("H100", values(60, 0)), Series("A30", values(20, 40)))
    assert [(row.label, row.cells, row.total) for row in chart.rows] == [
        ("1 Nov", ("€60", "€20"), "€80"),
        ("2 Nov", ("€0", "€40"), "€40"),
    ]
    assert [(entry.name, entry.total) for entry in chart.legend] == [
        ("H100", "€60"),
        ("A30", "€60"),
    ]
    assert chart.desc == (
        "1 Nov to 2 Nov: €120 in all. Highest: 1 Nov with €80. H100 €60, A30 €60."
    )


def test_a_correction_is_in_the_sums_but_not_drawn() -> None:
    chart = stack(Series("H100", values(-5, 10)))
    assert chart.columns[0].segments == ()
    assert chart.rows[0].total == "€-5"
    assert chart.total == "€5"


def test_from_the_ninth_series_on_they_are_others() -> None:
    chart = stack(*(Series(f"p{n}", values(n, 1)) for n in range(11)))
    assert [entry.name for entry in chart.legend] == [*(f"p{n}" for n in range(7)), "Others"]
    assert chart.rows[0].cells[-1] == "€34"
    assert chart.total == "€66"


@pytest.mark.parametrize("days", [0, 1, 2, 5, 24, 28, 90, 366])
def test_labels_stay_few_and_the_newest_has_one(days: int) -> None:
    columns = stack(Series("a", values(*[1] * days)), days=days).columns
    ticks = [column.tick for column in columns]
    assert sum(tick != "" for tick in ticks) <= 10
    assert sum(tick == "always" for tick in ticks) <= 5
    assert not ticks or ticks[-1] == "always"


@pytest.mark.parametrize(
    ("highest", "top"),
    [("0", "0"), ("0.07", "0.08"), ("1", "1"), ("1.1", "2"), ("2.2", "2.5"), ("81", "100"),
     ("4100", "5000")],
)  # fmt: skip
def test_the_axis_ends_at_a_round_number(highest: str, top: str) -> None:
    assert charts._nice_top(Decimal(highest)) == Decimal(top)


@pytest.mark.parametrize("series", [[], [Series("a", values(0, 0))]])
def test_a_chart_without_anything_above_zero_is_empty(series: list[Series]) -> None:
    chart = stack(*series)
    assert chart.empty
    html = render_to_string("charts/stacked_bars.html", {"chart": chart, "empty_text": "Soon."})
    assert "Soon." in html


def test_a_series_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="a: 1 values for 2 labels"):
        stack(Series("a", values(1)))


@pytest.mark.parametrize(
    ("used", "nominal", "limit", "tone", "parts", "note"),
    [
        (0, 8, 0, "idle", [], "8 free"),
        (4, 8, 8, "own", [("own", "0%", "25%")], "4 free"),
        (12, 8, 8, "borrowed", [("own", "0%", "50%"), ("borrowed", "50%", "25%")], "4 borrowed"),
        (8, 8, 0, "full", [("own", "0%", "100%")], "0 free"),
        (10, 4, 4, "over",
         [("own", "0%", "40%"), ("borrowed", "40%", "40%"), ("over", "80%", "20%")], "2 over"),
        (2, 0, 4, "borrowed", [("borrowed", "0%", "50%")], "2 borrowed"),
        (8, 8, None, "own", [("own", "0%", "80%")], "0 free"),
        (0, 0, 0, "idle", [], "0 free"),
    ],
)  # fmt: skip
def test_bullet(
    used: int, nominal: int, limit: int | None, tone: str, parts: list[tuple[str, str, str]],
    note: str,
) -> None:  # fmt: skip
    chart = charts.bullet(id="b", title="H100", used=used, nominal=nominal, borrowing_limit=limit)
    assert chart.tone == tone
    assert [(part.kind, part.x, part.width) for part in chart.parts] == parts
    assert chart.note == note


def test_a_bullet_says_in_words_what_it_draws() -> None:
    chart = charts.bullet(id="b", title="H100", used=12, nominal=8, borrowing_limit=8)
    assert chart.desc == "12 used of 8, up to 16 with borrowing. 4 borrowed."


def fleet(*devices: Device, state: str = "") -> list[Cluster]:
    return [Cluster("west", [Node("n1", "H100", devices, state=state)])]


def test_a_span_lies_where_its_slices_are() -> None:
    device = Device("0", 8, [Holding(4, 6, "nlp", label="2g.20gb"), Holding(0, 4, "vision")])
    view = device_map.device_map(id="m", title="Map", clusters=fleet(device))
    spans = view.clusters[0].nodes[0].devices[0].spans
    assert [(span.x, span.width, span.text) for span in spans] == [
        ("0%", "50%", "V"),
        ("50%", "25%", "N"),
    ]
    assert spans[1].title == "nlp 2g.20gb on slices 4-5 of 8"
    assert len(view.clusters[0].nodes[0].devices[0].marks) == 7


def test_free_counts_parts_and_leaves_out_what_is_sick() -> None:
    devices = [
        Device("0", 8, [Holding(0, 4, "a"), Holding(7, 8, "b", state="BOUND")]),
        Device("1", 1000, [Holding(0, 250, "a")]),
        Device("2", 1000, healthy=False),
        Device("3", 1000),
    ]
    view = device_map.device_map(id="m", title="Map", clusters=fleet(*devices))
    assert view.clusters[0].free == "2.12 of 4 GPUs free"
    assert view.looks == ("starting", "unhealthy")
    assert [row.span for row in view.rows] == ["slices 0-3 of 8", "slice 7 of 8", "0.25 of it"]


def test_colours_follow_the_given_owners_whoever_is_on_the_map() -> None:
    clusters = fleet(Device("0", 1000, [Holding(0, 1000, "speech")]))
    view = device_map.device_map(
        id="m", title="Map", clusters=clusters, owners=["nlp", "robotics", "speech"]
    )
    assert view.owners == (device_map.Owner("speech", "S", 3),)


def test_codes_are_the_shortest_beginnings_that_differ() -> None:
    names = ["vision", "Voice", "nlp", "team-a", "team-b", "vision"]
    assert device_map.owner_codes(names[:5]) == {
        "vision": "Vi",
        "Voice": "Vo",
        "nlp": "N",
        "team-a": "4",
        "team-b": "5",
    }


def test_a_device_of_four_slices_is_whole_with_four() -> None:
    device = Device("0", 4, [Holding(0, 4, "a")])
    view = device_map.device_map(id="m", title="Map", clusters=fleet(device))
    assert view.clusters[0].free == "0 of 1 GPUs free"
    assert [row.span for row in view.rows] == ["the whole device"]
    assert view.clusters[0].nodes[0].devices[0].marks == ("25%", "50%", "75%")


def test_a_large_fleet_is_drawn_by_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_map, "DETAIL_DEVICES", 2)
    clusters = fleet(*(Device(str(n), 1000, [Holding(0, 1000, "a")]) for n in range(3)))
    view = device_map.device_map(id="m", title="Map", clusters=clusters)
    node = view.clusters[0].nodes[0]
    assert not view.detail
    assert (node.devices, node.held, node.level, view.rows) == ((), "3", 4, ())
    assert "cell level-4" in render_to_string("charts/device_map.html", {"map": view})


def test_a_cluster_without_nodes_says_so() -> None:
    view = device_map.device_map(id="m", title="Map", clusters=[Cluster("edge", [])])
    html = render_to_string("charts/device_map.html", {"map": view})
    assert "No node with a GPU has reported yet." in html


def test_the_drawings_are_well_formed_and_named() -> None:
    device = Device(
        "0", 8, [Holding(0, 4, "a<b", state="BOUND"), Holding(6, 8, "c", "PREEMPTING")]
    )
    pages: dict[str, dict[str, Any]] = {
        "charts/stacked_bars.html": {"chart": stack(Series("a&b", values(3, 4)))},
        "charts/bullet.html": {"chart": charts.bullet(id="b", title="<x>", used=3, nominal=2)},
        "charts/device_map.html": {
            "map": device_map.device_map(
                id="m", title="Map", clusters=fleet(device, state="CORDONED")
            )
        },
    }
    for template, context in pages.items():
        html = render_to_string(template, context)
        tree = ElementTree.fromstring(html.replace("&nbsp;", " "))  # noqa: S314 - our own page
        pictures = [svg for svg in tree.iter("svg") if svg.get("role") == "img"]
        assert pictures, template
        for picture in pictures:
            assert picture.find("title") is not None, template
        ids = [element.get("id") for element in tree.iter() if element.get("id")]
        assert len(ids) == len(set(ids)), template
        assert " style=" not in html
