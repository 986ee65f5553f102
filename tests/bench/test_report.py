"""The form of a benchmark's file: what reads it knows `metrics` of values and units only."""

import json
from pathlib import Path

import pytest

from tests.bench import report
from tests.bench.report import RESULTS, Figures, Goal


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Figures:
    monkeypatch.setattr(report, "idle_part", lambda: 1.0)
    return Figures()


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_the_kept_figures_are_values_with_units(path: Path) -> None:
    kept = json.loads(path.read_text())
    assert kept["metrics"].keys() == kept["taken_at"].keys() >= kept.get("taken_of", {}).keys()
    assert all(metric.keys() == {"value", "unit"} for metric in kept["metrics"].values())


def test_a_later_run_keeps_what_it_did_not_take_with_its_day(
    figures: Figures, tmp_path: Path
) -> None:
    path = tmp_path / "path.json"
    old = {"a_s": {"value": 1, "unit": "s"}, "b_s": {"value": 2, "unit": "s"}}
    path.write_text(json.dumps({"metrics": old, "taken_at": dict.fromkeys(old, "earlier")}))
    figures.add("b_s", 3, "s")
    figures.write(path)
    written = json.loads(path.read_text())
    assert written["metrics"] == {**old, "b_s": {"value": 3, "unit": "s"}}
    assert written["taken_at"] == {"a_s": "earlier", "b_s": written["date"]}
    assert written["taken_of"] == {"b_s": written["commit"]}


def test_a_first_run_needs_no_earlier_one(figures: Figures, tmp_path: Path) -> None:
    figures.add("a_s", 1.23456, "s")
    figures.write(tmp_path / "results" / "path.json")
    written = json.loads((tmp_path / "results" / "path.json").read_text())
    assert written["metrics"] == {"a_s": {"value": 1.235, "unit": "s"}}


def test_of_many_figures_those_with_a_goal_are_told(figures: Figures) -> None:
    figures.add("quick_s", 0.2, "s")
    figures.add("slow_s", 3, "s")
    figures.add("other", 1, "")
    goals = {"slow_s": Goal(at_most=1), "quick_s": Goal(at_most=1), "untaken": Goal(at_least=1)}
    slow, quick, note = figures.against(goals).splitlines()
    assert (slow.split()[0], slow.endswith("MISSED)")) == ("slow_s", True)
    assert (quick.split()[0], quick.endswith("met)")) == ("quick_s", True)
    assert "idle" in note
    assert figures.missed == ["slow_s"]


@pytest.mark.parametrize(
    ("value", "bounds", "missed", "told"),
    [
        (0.79, {"at_least": 0.8}, True, "(at least 0.8: MISSED)"),
        (0.8, {"at_least": 0.8}, False, "(at least 0.8: met)"),
        (500.0, {"at_most": 500}, False, "(at most 500: met)"),
        (500.1, {"at_most": 500}, True, "(at most 500: MISSED)"),
        (7.0, {}, False, ""),
    ],
)
def test_a_goal_is_met_or_missed(
    figures: Figures, value: float, bounds: dict[str, float], missed: bool, told: str
) -> None:
    figures.add("a", value, "x", **bounds)
    assert figures.missed == ["a"] * missed
    assert figures.table().splitlines()[0].endswith(f" x  {told}" if told else " x")
