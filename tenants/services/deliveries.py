"""Sending what `notices` wrote down, at least once: a delivery is taken in one transaction, sent
outside of any, and noted in another. Whoever dies between leaves it to the next, with the same id.
"""

import logging
import smtplib
from collections.abc import Callable
from datetime import datetime, timedelta

import orjson
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction

from clusters.sealing import Unopened
from controlplane.kernel.crash import crash
from tenants.models import Channel, ChannelKind, Delivery, User
from tenants.services import channels, notice_words, webhooks
from tenants.services.webhooks import Unsent

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
"""After it a delivery whose sender said nothing is another's. Longer than a task may last."""
MOST_TRIES = 7
"""With the waits between them, an hour."""
_FIRST_WAIT = timedelta(minutes=1)


class Undelivered(Exception):
    """Nothing says that it arrived. The message is for who may see the delivery."""


def send_due(*, at: Callable[[], datetime], goes_on: Callable[[], bool]) -> int:
    """Send what is due, the longest due first, as long as it may go on; how many were tried."""
    count = 0
    while goes_on() and (delivery := _take(at())):
        _carry_out(delivery, at)
        count += 1
    return count


@transaction.atomic
def _take(at: datetime) -> Delivery | None:
    """The next one that nobody is at, which is the caller's for as long as LEASE."""
    due = Delivery.objects.filter(Delivery.under_way(), due_at__lte=at)
    found = due.select_for_update(skip_locked=True, of=("self",))
    found = found.select_related("notice", "user", "channel")
    delivery = found.order_by("due_at", "id").first()
    if delivery is None:
        return None
    delivery.tries += 1
    delivery.due_at = at + LEASE
    delivery.save(update_fields=["tries", "due_at"])
    return delivery


def _carry_out(delivery: Delivery, at: Callable[[], datetime]) -> None:
    error = ""
    try:
        if delivery.tries > MOST_TRIES:  # whoever tried died of it, or was killed
            raise Undelivered("No try came to an end.")
        crash("T1")
        if delivery.channel is not None:
            _post(delivery, delivery.channel, at=at())
        elif delivery.user is not None:
            _mail(delivery, delivery.user)
        crash("T2")
    except Undelivered as failure:
        error = str(failure)
    _note(delivery, error, at=at())


def _note(delivery: Delivery, error: str, *, at: datetime) -> None:
    """What came of this try, unless it was another's meanwhile."""
    ours = Delivery.objects.filter(Delivery.under_way(), id=delivery.id, tries=delivery.tries)
    if not error:
        ours.update(sent_at=at, error="")
    elif delivery.tries >= MOST_TRIES:
        ours.update(failed_at=at, error=error[:300])
        logger.warning("delivery %s is given up: %s", delivery.id, error)
    else:
        ours.update(due_at=at + _FIRST_WAIT * 2 ** (delivery.tries - 1), error=error[:300])


def _post(delivery: Delivery, channel: Channel, *, at: datetime) -> None:
    """Raises Undelivered, of which what was answered is no part."""
    notice = delivery.notice
    body = orjson.dumps(notice_words.message(notice, ChannelKind(channel.kind)))
    headers = {"Berth-Event": notice.event, "Berth-Notice": str(notice.id)}
    try:
        target = channels.target(channel)
        webhooks.post(target, body, headers=headers, at_s=int(at.timestamp()))
    except (Unopened, Unsent) as error:
        raise Undelivered(str(error)) from error


def _mail(delivery: Delivery, user: User) -> None:
    """Raises Undelivered, of which the server's own words are no part."""
    subject, text = notice_words.mail(delivery.notice)
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].rstrip(">")
    message = EmailMessage(
        subject,
        text,
        to=[user.email],
        headers={
            "Message-ID": f"<{delivery.id}@{domain}>",
            "X-Berth-Notice": str(delivery.notice_id),
            "Auto-Submitted": "auto-generated",
        },
    )
    try:
        message.send()
    except smtplib.SMTPResponseException as error:
        raise Undelivered(f"The mail server answered {error.smtp_code}.") from error
    except smtplib.SMTPRecipientsRefused as error:
        raise Undelivered("The mail server does not take that address.") from error
    except (smtplib.SMTPException, OSError, ValueError) as error:
        told = f"The mail server can't be reached ({type(error).__name__})."
        raise Undelivered(told) from error
