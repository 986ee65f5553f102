"""Filters and tags of every page: numbers, times and states the way people read them.

What must not live here: queries, decisions, HTML strings (only `icon` makes an element, with
`format_html`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from decimal import ROUND_HALF_UP, Decimal

from django import forms, template
from django.conf import settings
from django.forms.boundfield import BoundField, BoundWidget
from django.template import Context
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from controlplane.kernel import clock

register = template.Library()

NONE = "\N{EN DASH}"
"""Shown where there is no value; never 0, which is a value."""
SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£"}
CENT = Decimal("0.01")
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


@register.filter
def money(amount: Decimal | None, currency: str | None = None) -> str:
    """Decimal("1234.5") -> "€1,234.50"; a non-zero amount below a cent is "under €0.01".

    `currency` is an ISO 4217 code, by default the installation's. None is a dash.
    """
    if amount is None:
        return NONE
    code = currency or settings.BERTH_CURRENCY
    sign = "\N{MINUS SIGN}" if amount < 0 else ""
    value = abs(Decimal(amount))
    if 0 < value < CENT:
        return f"{sign}under {_priced(CENT, code)}"
    return sign + _priced(value.quantize(CENT, ROUND_HALF_UP), code)


@register.filter
def price(amount: Decimal, currency: str) -> str:
    """Decimal("3.250001") -> "€3.250001": with all decimals that it has, two at least."""
    places = max(2, -int(amount.normalize().as_tuple().exponent))
    return _priced(amount, currency, places)


def _priced(value: Decimal, code: str, places: int = 2) -> str:
    symbol = SYMBOLS.get(code)
    told = f"{value:,.{places}f}"
    return f"{symbol}{told}" if symbol else f"{told}\N{NO-BREAK SPACE}{code}"


@register.filter
def duration(span: float | timedelta | None) -> str:
    """6000 (seconds) -> "1 h 40 min": the two largest units. None is a dash."""
    if span is None:
        return NONE
    total = span.total_seconds() if isinstance(span, timedelta) else span
    seconds = round(abs(total))
    if seconds < 10 * MINUTE_S:
        parts = _parts(seconds, (MINUTE_S, "min"), (1, "s"))
    elif seconds < DAY_S:
        parts = _parts(round(seconds / MINUTE_S) * MINUTE_S, (HOUR_S, "h"), (MINUTE_S, "min"))
    else:
        parts = _parts(round(seconds / HOUR_S) * HOUR_S, (DAY_S, "d"), (HOUR_S, "h"))
    return ("\N{MINUS SIGN}" if total < 0 and seconds else "") + (parts or "0 s")


def _parts(seconds: int, large: tuple[int, str], small: tuple[int, str]) -> str:
    many, rest = divmod(seconds, large[0])
    few = rest // small[0]
    words = [f"{count} {unit}" for count, unit in ((many, large[1]), (few, small[1])) if count]
    return " ".join(words)


@register.filter
def longer(seconds: int) -> str:
    """6000 -> "+1 h 40 min", 0 -> "0"; what is less than that has a minus sign."""
    if not seconds:
        return "0"
    sign = "+" if seconds > 0 else "\N{MINUS SIGN}"
    return f"{sign}{duration(abs(seconds))}"


@register.filter
def ago(at: datetime | None, now: datetime | None = None) -> str:
    """How long before `now` (by default the clock's) it was: "just now", "5 min ago", "3 d ago".

    A moment in the future reads "in 5 min". None is a dash.
    """
    if at is None:
        return NONE
    seconds = ((now or clock.now()) - at).total_seconds()
    size = abs(seconds)
    if size < 5:
        return "just now"
    for unit_s, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min"), (1, "s")):
        if size >= unit_s:
            text = f"{int(size // unit_s)} {unit}"
            break
    return f"{text} ago" if seconds > 0 else f"in {text}"


@register.filter
def gpus(milli: int | None) -> str:
    """2000 -> "2", 500 -> "0.5": thousandths of a device (`_milli`) as a count. None is a dash."""
    if milli is None:
        return NONE
    whole, rest = divmod(abs(milli), 1000)
    digits = f"{whole:,}" + (f".{rest:03d}".rstrip("0") if rest else "")
    return f"\N{MINUS SIGN}{digits}" if milli < 0 else digits


@register.filter
def when(at: datetime | None, now: datetime | None = None) -> str:
    """A local time: "14:02" today, else "Sun 23 Nov 14:02", with the year if not this one."""
    if at is None:
        return NONE
    zone = timezone.get_current_timezone()
    return _moment(at.astimezone(zone), (now or clock.now()).astimezone(zone))


def _moment(at: datetime, today: datetime) -> str:
    if at.date() == today.date():
        return f"{at:%H:%M}"
    if at.date() == today.date() + timedelta(days=1):
        return f"tomorrow {at:%H:%M}"
    year = f" {at.year}" if at.year != today.year else ""
    return f"{at:%a} {at.day} {at:%b}{year} {at:%H:%M}"


@register.simple_tag
def range_text(p50_s: float | None, p90_s: float | None, as_of: datetime | None) -> str:
    """When a pending workload starts, from its Estimate, in local time: see `start_range`."""
    return start_range(p50_s, p90_s, as_of, zone=timezone.get_current_timezone())


def start_range(
    p50_s: float | None, p90_s: float | None, as_of: datetime | None, *, zone: tzinfo
) -> str:
    """ "probably by 14:35, nine times in ten by 15:05 UTC".

    `p50_s` and `p90_s` are seconds from `as_of` to the start. Both moments round up: to 5 minutes
    when p90 is under 2 h, 15 under 6 h, an hour under a day, else half a day.
    """
    if p90_s is None or as_of is None:
        return "no estimate yet"
    if p90_s <= 2 * MINUTE_S:
        return "within two minutes"
    today = as_of.astimezone(zone)
    step_s = _rounding(p90_s)
    likely = None if p50_s is None else _ceiling(today + timedelta(seconds=p50_s), step_s)
    if p90_s > 7 * DAY_S:
        if p50_s is None or p50_s > 7 * DAY_S or likely is None:
            return "in more than a week"
        return f"probably by {_moment(likely, today)} {likely:%Z}, but it may take over a week"
    bound = _ceiling(today + timedelta(seconds=p90_s), step_s)
    late = f"nine times in ten by {_moment(bound, today)} {bound:%Z}"
    if likely is None or likely == bound:
        return late
    return f"probably by {_moment(likely, today)}, {late}"


def _rounding(p90_s: float) -> int:
    """The step that a bound this far away is rounded to, in seconds."""
    if p90_s < 2 * HOUR_S:
        return 5 * MINUTE_S
    if p90_s < 6 * HOUR_S:
        return 15 * MINUTE_S
    return HOUR_S if p90_s < DAY_S else 12 * HOUR_S


def _ceiling(at: datetime, step_s: int) -> datetime:
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    steps = math.ceil((at - midnight).total_seconds() / step_s)
    return midnight + timedelta(seconds=steps * step_s)


@dataclass(frozen=True, slots=True)
class Status:
    """How a state looks: words, an icon of the sprite, and the tone that `app.css` colours."""

    text: str
    icon: str
    tone: str


STATUSES = {
    "PENDING": Status("Pending", "clock", "wait"),
    "ADMITTED": Status("Admitted", "ticket", "go"),
    "BOUND": Status("Bound", "link", "go"),
    "RUNNING": Status("Running", "player-play", "run"),
    "SUCCEEDED": Status("Succeeded", "check", "done"),
    "FAILED": Status("Failed", "x", "bad"),
    "CANCELLING": Status("Cancelling", "player-stop", "stop"),
    "CANCELLED": Status("Cancelled", "ban", "stop"),
    "PREEMPTING": Status("Preempting", "arrow-back-up", "warn"),
    # how an attempt ended, besides
    "PREEMPTED": Status("Preempted", "arrow-back-up", "warn"),
    # clusters and nodes
    "NEW": Status("Connecting", "refresh", "go"),
    "ACTIVE": Status("Active", "plug-connected", "run"),
    "DEGRADED": Status("Degraded", "alert-triangle", "warn"),
    "DRAINING": Status("Draining", "tool", "warn"),
    "CORDONED": Status("Cordoned", "hand-stop", "warn"),
    "LEAVING": Status("Going away", "alert-triangle", "warn"),
    "UNREACHABLE": Status("Unreachable", "plug-connected-x", "bad"),
    "LOST": Status("Lost", "plug-connected-x", "bad"),
    # probes and their steps
    "WORKS": Status("Works", "check", "run"),
    "WARNING": Status("Warning", "alert-triangle", "warn"),
    "FAILS": Status("Fails", "x", "bad"),
    "UNDER-WAY": Status("Under way", "refresh", "go"),
    "STOPPED": Status("Stopped", "hand-stop", "warn"),
    # whether pods see devices that they never asked for
    "SAFE": Status("Safe", "check", "run"),
    "UNSAFE": Status("Unsafe", "alert-triangle", "bad"),
    "UNKNOWN": Status("Not known", "help-circle", "wait"),
    # queues
    "HELD": Status("Held", "hand-stop", "warn"),
    # budgets
    "OK": Status("Enough left", "check", "run"),
    "WARNED": Status("Nearly used up", "alert-triangle", "warn"),
    "USED": Status("Used up", "hand-stop", "bad"),
    # gates
    "GATE-WAITING": Status("Not open yet", "clock", "wait"),
    "GATE-OPEN": Status("Open", "check", "done"),
    "GATE-REFUSED": Status("Refused", "x", "bad"),
    # requests for quota
    "OPEN": Status("Open", "inbox", "wait"),
    "GRANTED": Status("Granted", "check", "done"),
    "DENIED": Status("Denied", "x", "bad"),
    "WITHDRAWN": Status("Withdrawn", "arrow-back-up", "stop"),
}


@register.filter
def status(state: str) -> Status:
    """The look of a workload's, cluster's or request's state, in any case; unknown ones as is."""
    key = str(state).upper()
    fallback = Status(key.replace("_", " ").capitalize(), "help-circle", "stop")
    return STATUSES.get(key, fallback)


@register.filter
def status_tone(state: str) -> str:
    """The tone of `status`, for a class: "bad", "warn", "run" and so on."""
    return status(state).tone


@register.simple_tag
def icon(name: str, label: str = "", css: str = "") -> SafeString:
    """An icon of `icons.svg`. Without a label it is decoration and hidden from screen readers."""
    url = f"{static('icons.svg')}#{name}"
    classes = f"icon {css}".strip()
    if label:
        return format_html(
            '<svg class="{}" role="img" aria-label="{}"><use href="{}"></use></svg>',
            classes, label, url,
        )  # fmt: skip
    return format_html(
        '<svg class="{}" aria-hidden="true"><use href="{}"></use></svg>', classes, url
    )


@register.filter
def control(field: BoundField) -> SafeString:
    """The field's widget with the classes of its kind; Django adds the aria attributes."""
    widget = field.field.widget
    match widget:
        case forms.CheckboxInput():
            kind = "form-check-input"
        case forms.Select():
            kind = "form-select"
        case _:
            kind = "form-control"
    own = widget.attrs.get("class", "")
    invalid = "is-invalid" if field.errors else ""
    return field.as_widget(attrs={"class": " ".join(filter(None, (kind, own, invalid)))})


@register.filter
def options(field: BoundField) -> list[BoundWidget]:
    """The choices of a radio or checkbox group, each `tag` with the class of its kind."""
    for option in field.subwidgets:
        option.data["attrs"]["class"] = "form-check-input"
    return field.subwidgets


@register.filter
def is_checkbox(field: BoundField) -> bool:
    """Whether the label stands behind the widget instead of above it."""
    return isinstance(field.field.widget, forms.CheckboxInput)


@dataclass(frozen=True, slots=True)
class NavItem:
    """An entry of the sidebar; `key` follows `g` on the keyboard, `count` 0 shows no badge."""

    url: str
    label: str
    icon: str
    key: str
    group: str
    active: bool
    count: int


NAV = (
    ("home", "Home", "home", "h", "Work"),
    ("workload-submit", "Submit", "circle-plus", "n", "Work"),
    ("workload-list", "Workloads", "list-details", "w", "Work"),
    ("queue", "Queue", "list-numbers", "q", "Work"),
    ("cluster-list", "Clusters", "server-2", "c", "Capacity"),
    ("quota-list", "Quota", "gauge", "u", "Capacity"),
    ("tenant-list", "Tenants", "users", "t", "Capacity"),
    ("request-list", "Requests", "inbox", "r", "Capacity"),
    ("spend", "Spend", "coins", "s", "Money"),
    ("audit-list", "Audit", "history", "a", "Records"),
)


_FAMILIES = {
    **dict.fromkeys(("budget", "reservation"), "quota-list"),
    **dict.fromkeys(("account", "channels", "fleet", "group", "member"), "tenant-list"),
    **dict.fromkeys(("policy", "project", "service"), "tenant-list"),
    **dict.fromkeys(("approval", "delegation", "grant"), "request-list"),
    "array": "workload-list",
    "layout": "cluster-list",
    "rate": "spend",
}
"""Pages of another entry than their names say."""


@register.simple_tag(takes_context=True)
def nav_items(context: Context) -> list[NavItem]:
    """The sidebar.

    The entry of the current page is the URL's own name, else the list of its family:
    `workload-detail` lights up Workloads. `nav_counts` of the context maps a URL name to a badge.
    """
    counts: Mapping[str, int] = context.get("nav_counts") or {}
    request = context.get("request")
    match_ = getattr(request, "resolver_match", None)
    current = _current(getattr(match_, "url_name", None) or "")
    return [
        NavItem(reverse(name), label, icon_name, key, group, name == current, counts.get(name, 0))
        for name, label, icon_name, key, group in NAV
    ]


def _current(url_name: str) -> str:
    """The entry that a page belongs to, "" for none."""
    names = {entry[0] for entry in NAV}
    if url_name in names:
        return url_name
    family = url_name.split("-")[0]
    listed = _FAMILIES.get(family, f"{family}-list")
    return listed if listed in names else family
