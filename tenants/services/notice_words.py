"""Notices as people read them. What somebody wrote, why they ask or why not, is in none: it is
behind the link, where only who may see it does.
"""

from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.urls import reverse

from tenants.models import ChannelKind, Event, Notice

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
}


def told(notice: Notice) -> str:
    """What it says, in one sentence."""
    body = notice.body
    if notice.event == Event.TEST:
        return f"This is a test of the channel {body['channel']}."
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


def mail(notice: Notice) -> tuple[str, str]:
    """Subject and text."""
    parts = (told(notice), _FURTHER.get(Event(notice.event), ""), link())
    return f"Berth: {told(notice)}", "\n\n".join(part for part in parts if part) + "\n"


def message(notice: Notice, kind: ChannelKind) -> dict[str, object]:
    """What a channel of that kind is sent, as JSON."""
    if kind == ChannelKind.SLACK:
        text = told(notice)
        for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):  # or they would be links
            text = text.replace(sign, name)
        return {"text": f"{text} <{link()}|Look>" if link() else text}
    return {
        "id": str(notice.id),
        "event": notice.event,
        "at": notice.at.isoformat(),
        "text": told(notice),
        "url": link(),
        "body": notice.body,
    }


def link() -> str:
    """Where requests are, and what came of them; "" where nobody said how Berth is reached."""
    base = settings.BERTH_PUBLIC_URL
    return f"{base}{reverse('request-list')}" if base else ""


def _amount(milli: int, flavor: str) -> str:
    return f"{Decimal(milli).scaleb(-3).normalize():f} {flavor}"
