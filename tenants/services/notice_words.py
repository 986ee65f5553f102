"""Notices as people read them. What somebody wrote, why they ask or why not, is in none: it is
behind the link, where only who may see it does.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.urls import reverse

from tenants.models import OF_BUDGETS, OF_REVIEWS, OF_WORK, ChannelKind, Event, Notice

_TOLD = {
    Event.REQUEST_OPENED: "{requested_by} asks for {asked} in {project}{until}.",
    Event.REQUEST_GRANTED: "{granted} in {project} is granted{until}.",
    Event.REQUEST_DENIED: "The request for {asked} in {project} was denied.",
    Event.GRANT_ENDING: "{granted} in {project} ends in {days} days, on {end}.",
    Event.GRANT_ENDED: "{granted} in {project} has ended.",
}
_FURTHER = {
    Event.REQUEST_OPENED: "You may decide it.",
    Event.REQUEST_DENIED: "Why is told where it was asked.",
    Event.GRANT_ENDING: "The quota falls back by itself then. Ask for it anew to keep it.",
    Event.GRANT_ENDED: "The quota is what is there without it.",
    Event.WORK_IDLE: "They may be taken back for that; when, is told on its page.",
    Event.WORK_STOPPED: "Why is told on its page; what it saved is there when it starts again.",
    Event.BUDGET_USED_UP: "What starts and what runs on then is as the budget says.",
    Event.REVIEW_DUE: "Whoever owns a tenant above the project, or operates it, says on its page"
    " that the quota is still wanted. Else nothing new of the project starts from then on.",
    Event.REVIEW_FROZE: "What runs goes on. Whoever owns a tenant above the project, or operates"
    " it, says on its page that the quota is still wanted; then work starts again at once.",
}
_BECAME = {
    Event.WORK_STARTED: "started",
    Event.WORK_IDLE: "leaves its devices unused",
    Event.WORK_STOPPED: "stopped early",
}


def told(notice: Notice) -> str:
    """What it says, in one sentence."""
    body = notice.body
    if notice.event == Event.TEST:
        return f"This is a test of the channel {body['channel']}."
    if notice.event in OF_WORK:
        return _of_work(Event(notice.event), body)
    if notice.event in OF_BUDGETS:
        used = (
            "is used up"
            if notice.event == Event.BUDGET_USED_UP
            else f"is {body['percent']} % used"
        )
        return f"The budget of {body['budget']}, {body['limit_h']} GPU-hours, {used}."
    if notice.event in OF_REVIEWS:
        return _of_review(body)
    end = datetime.fromisoformat(body["until_at"]) if body["until_at"] else None
    return _TOLD[Event(notice.event)].format(
        requested_by=body["requested_by"],
        project=body["project"],
        asked=_amount(body["nominal_milli"], body["flavor"]),
        granted=_amount(body["granted_milli"] or 0, body["flavor"]),
        until=f" until {end:%Y-%m-%d %H:%M} UTC" if end else "",
        end=f"{end:%Y-%m-%d %H:%M} UTC" if end else "",
        days=body.get("days"),
    )


def _of_review(body: dict[str, Any]) -> str:  # Any: JSON values
    if body["freezes_at"] is None:
        return f"Nobody confirmed the quota of {body['project']}: nothing new of it starts."
    until = datetime.fromisoformat(body["freezes_at"])
    return f"The quota of {body['project']} has to be confirmed until {until:%Y-%m-%d %H:%M} UTC."


def _of_work(event: Event, body: dict[str, Any]) -> str:  # Any: JSON values
    """What became of somebody's work, the first of it by name."""
    count, failed = body["count"], body["failed"]
    more = count - len(body["names"])
    names = ", ".join(body["names"]) + (f" and {more} more" if more else "")
    became = _BECAME.get(event) or _ended(count, failed)
    return f"Work of {body['submitted_by']} in {body['project']} {became}: {names}."


def _ended(count: int, failed: int) -> str:
    if failed == count:
        return "failed"
    return f"ended, {failed} of {count} failed" if failed else "succeeded"


def mail(notice: Notice) -> tuple[str, str]:
    """Subject and text."""
    parts = (told(notice), _FURTHER.get(Event(notice.event), ""), link(notice))
    return f"Berth: {told(notice)}", "\n\n".join(part for part in parts if part) + "\n"


def message(notice: Notice, kind: ChannelKind) -> dict[str, object]:
    """What a channel of that kind is sent, as JSON."""
    if kind == ChannelKind.SLACK:
        text = told(notice)
        for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):  # or they would be links
            text = text.replace(sign, name)
        url = link(notice)
        return {"text": f"{text} <{url}|Look>" if url else text}
    return {
        "id": str(notice.id),
        "event": notice.event,
        "at": notice.at.isoformat(),
        "text": told(notice),
        "url": link(notice),
        "body": notice.body,
    }


def link(notice: Notice) -> str:
    """Where what it is about is shown; "" where nobody said how Berth is reached."""
    base = settings.BERTH_PUBLIC_URL
    return f"{base}{_path(notice)}" if base else ""


def _path(notice: Notice) -> str:
    if notice.event in OF_BUDGETS:
        return reverse("budget-list")
    if notice.event in OF_REVIEWS:
        return reverse("project-detail", args=[notice.body["project_id"]])
    if notice.event not in OF_WORK:
        return reverse("request-list")
    one = notice.body["workload"]
    return reverse("workload-detail", args=[one]) if one else reverse("workload-list")


def _amount(milli: int, flavor: str) -> str:
    return f"{Decimal(milli).scaleb(-3).normalize():f} {flavor}"
