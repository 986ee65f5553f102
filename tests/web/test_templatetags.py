"""How numbers, times and states read. No database."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django import forms
from django.template import Context
from django.template.loader import render_to_string
from django.test import override_settings
from django.urls import ResolverMatch

from controlplane.templatetags import berth

NOON = datetime(2026, 11, 20, 12, 2, tzinfo=UTC)  # a Friday
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (None, "EUR", "\N{EN DASH}"),
        (Decimal(0), "EUR", "€0.00"),
        (Decimal("1234.5"), "EUR", "€1,234.50"),
        (Decimal("0.005"), "USD", "under $0.01"),
        (Decimal("0.015"), "USD", "$0.02"),
        (Decimal("-12.4"), "EUR", "\N{MINUS SIGN}€12.40"),
        (Decimal("1234567.891"), "CHF", "1,234,567.89\N{NO-BREAK SPACE}CHF"),
    ],
)
def test_money(amount: Decimal | None, currency: str, text: str) -> None:
    assert berth.money(amount, currency) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [("3.250000", "€3.25"), ("3.250001", "€3.250001"), ("10", "€10.00"), ("0.5", "€0.50")],
)
def test_a_price_has_all_its_decimals(amount: str, text: str) -> None:
    assert berth.price(Decimal(amount), "EUR") == text


@override_settings(BERTH_CURRENCY="GBP")
def test_money_is_the_installations_by_default() -> None:
    assert berth.money(Decimal(1)) == "£1.00"


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (None, "\N{EN DASH}"),
        (0, "0 s"),
        (0.4, "0 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (600, "10 min"),
        (6000, "1 h 40 min"),
        (86_399, "24 h"),
        (86_400, "1 d"),
        (timedelta(days=3, hours=4, minutes=29), "3 d 4 h"),
        (-90, "\N{MINUS SIGN}1 min 30 s"),
    ],
)
def test_duration(span: float | timedelta | None, text: str) -> None:
    assert berth.duration(span) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (4.9, "just now"),
        (40, "40 s ago"),
        (119, "1 min ago"),
        (7200, "2 h ago"),
        (400_000, "4 d ago"),
        (-300, "in 5 min"),
    ],
)
def test_ago(seconds: float, text: str) -> None:
    assert berth.ago(NOON - timedelta(seconds=seconds), NOON) == text


def test_ago_of_nothing() -> None:
    assert berth.ago(None) == "\N{EN DASH}"


@pytest.mark.parametrize(
    ("milli", "text"),
    [(None, "\N{EN DASH}"), (0, "0"), (2000, "2"), (500, "0.5"), (1250, "1.25"), (333, "0.333"),
     (6_212_000, "6,212"), (-1500, "\N{MINUS SIGN}1.5")],
)  # fmt: skip
def test_gpus(milli: int | None, text: str) -> None:
    assert berth.gpus(milli) == text


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (None, "\N{EN DASH}"),
        (NOON - timedelta(hours=3), "09:02"),
        (NOON + timedelta(days=1), "tomorrow 12:02"),
        (NOON + timedelta(days=3), "Mon 23 Nov 12:02"),
        (NOON - timedelta(days=400), "Thu 16 Oct 2025 12:02"),
    ],
)
def test_when(at: datetime | None, text: str) -> None:
    assert berth.when(at, NOON) == text


@pytest.mark.parametrize(
    ("p50_s", "p90_s", "text"),
    [
        (None, None, "no estimate yet"),
        (30, 100, "within two minutes"),
        (1800, 3600, "probably by 13:35, nine times in ten by 14:05 CET"),
        (3500, 3510, "nine times in ten by 14:05 CET"),
        (None, 3600, "nine times in ten by 14:05 CET"),
        (7200, 3 * 3600, "probably by 15:15, nine times in ten by 16:15 CET"),
        (7200, 8 * 3600, "probably by 16:00, nine times in ten by 22:00 CET"),
        (
            11 * 3600,
            23 * 3600,
            "probably by tomorrow 01:00, nine times in ten by tomorrow 13:00 CET",
        ),
        (
            20 * 3600,
            60 * 3600,
            "probably by tomorrow 12:00, nine times in ten by Mon 23 Nov 12:00 CET",
        ),
        (
            86_400,
            8 * 86_400,
            "probably by Sun 22 Nov 00:00 CET, but it may take over a week",
        ),
        (8 * 86_400, 9 * 86_400, "in more than a week"),
    ],
)
def test_start_range_rounds_outward(p50_s: float | None, p90_s: float | None, text: str) -> None:
    assert berth.start_range(p50_s, p90_s, NOON, zone=BERLIN) == text


def test_start_range_is_never_earlier_than_the_estimate() -> None:
    for minutes in range(1, 12 * 60, 7):
        bound = NOON + timedelta(minutes=minutes)
        rounded = berth._ceiling(bound, berth._rounding(minutes * 60))
        assert bound <= rounded < bound + timedelta(hours=1)


def test_every_state_has_a_look() -> None:
    from clusters.models.cluster import ClusterState
    from scheduler.core.lifecycle import State

    for state in [*State, *ClusterState]:
        assert berth.status(state).icon != "help-circle", state


def test_an_unknown_state_is_shown_as_it_is() -> None:
    assert berth.status("half_open") == berth.Status("Half open", "help-circle", "stop")


def test_a_status_badge_has_words_and_an_icon() -> None:
    html = render_to_string("_status.html", {"state": "RUNNING"})
    assert "state-run" in html
    assert "#player-play" in html
    assert "Running" in html


def test_an_icon_without_a_label_is_hidden_and_a_label_is_escaped() -> None:
    assert 'aria-hidden="true"' in berth.icon("home")
    assert 'aria-label="&lt;b&gt;"' in berth.icon("home", "<b>")


class Form(forms.Form):
    name = forms.CharField(help_text="Small letters.")
    urgent = forms.BooleanField(required=False)
    flavor = forms.ChoiceField(choices=[("a", "A")])
    priority = forms.ChoiceField(widget=forms.RadioSelect, choices=[("n", "Normal")])


def test_a_field_with_an_error_points_to_it_and_to_its_help() -> None:
    html = render_to_string("_fields.html", {"form": Form({"flavor": "a", "priority": "n"})})
    assert 'aria-describedby="id_name_helptext id_name_error"' in html
    assert 'id="id_name_error"' in html
    assert 'id="id_name_helptext"' in html
    assert 'href="#id_name"' in html
    assert html.count('aria-invalid="true"') == 1


def test_widgets_get_the_class_of_their_kind() -> None:
    form = Form()
    assert 'class="form-control"' in berth.control(form["name"])
    assert 'class="form-check-input"' in berth.control(form["urgent"])
    assert 'class="form-select"' in berth.control(form["flavor"])
    assert 'class="form-check-input"' in str(berth.options(form["priority"])[0].tag())


def test_one_field_can_be_rendered_alone() -> None:
    html = render_to_string("_fields.html#field", {"field": Form()["urgent"]})
    assert html.count("<label") == 1


class Request:
    def __init__(self, url_name: str) -> None:
        self.resolver_match = ResolverMatch(lambda: None, (), {}, url_name)


@pytest.mark.parametrize(
    ("context", "active"),
    [
        ({"request": Request("queue")}, "queue"),
        ({"request": Request("workload-submit")}, "workload-submit"),
        ({"request": Request("workload-detail")}, "workload-list"),
        ({"request": Request("spend-project")}, "spend"),
        ({"request": Request("array-detail")}, "workload-list"),
        ({"request": Request("layout-list")}, "cluster-list"),
        ({"request": Request("reservation-list")}, "quota-list"),
        ({"request": Request("budget-list")}, "quota-list"),
        ({"request": Request("rate-list")}, "spend"),
        ({"request": Request("project-service-accounts")}, "tenant-list"),
        ({"request": Request("delegation-list")}, "request-list"),
        ({}, ""),
    ],
)
def test_the_sidebar_lights_up_the_pages_entry(
    monkeypatch: pytest.MonkeyPatch, context: dict[str, Any], active: str
) -> None:
    monkeypatch.setattr(berth, "reverse", lambda name: f"/{name}/")
    items = berth.nav_items(Context({**context, "nav_counts": {"request-list": 3}}))
    assert [item.url for item in items if item.active] == ([f"/{active}/"] if active else [])
    assert [item.count for item in items if item.label == "Requests"] == [3]
    assert len({item.key for item in items}) == len(berth.NAV)
