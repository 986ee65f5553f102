"""Sending what `notices` wrote down, at least once: a delivery is taken in one transaction, sent
outside of any, and noted in another. Whoever dies between leaves it to the next, with the same id.

Mail and channels are lanes of their own. Whoever names an address may have it never answer, so
channels go many at once, each with one message at a time, those that work first (ADR 0112).
"""

import logging
import smtplib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta

import orjson
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce
from django.db.models.lookups import IsNull

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
MOST_AT_ONCE = 32
"""Channels that are sent to beside each other."""
ROUND_S = webhooks.LIMIT_S + 2
"""After it nobody waits any more for those: a name may take longer to be looked up than anything
may take that is watched."""
_FIRST_WAIT = timedelta(minutes=1)


class Undelivered(Exception):
    """Nothing says that it arrived. The message is for who may see the delivery."""


def mail_due(*, at: Callable[[], datetime], goes_on: Callable[[], bool]) -> int:
    """Send the mail that is due, the longest due first, as long as it may go on; how many were
    tried."""
    count = 0
    while goes_on() and (taken := _take(_mails(at()), at())):
        for delivery in taken:
            _note(delivery, _try(delivery, at()), at=at())
        count += len(taken)
    return count


def post_due(*, at: Callable[[], datetime], goes_on: Callable[[], bool]) -> int:
    """Send to channels what is due, in rounds of ROUND_S at most, as long as it may go on; how
    many were tried."""
    count = 0
    while goes_on() and (taken := _take(_turns(at()), at())):
        Channel.objects.filter(id__in=[each.channel_id for each in taken]).update(tried_at=at())
        for delivery, error in _try_all(taken, at()):
            _note(delivery, error, at=at())
        count += len(taken)
    return count


def _mails(at: datetime) -> QuerySet[Delivery]:
    due = Delivery.objects.filter(Delivery.under_way(), user__isnull=False, due_at__lte=at)
    return due.order_by("due_at", "id")[:1]


def _turns(at: datetime) -> QuerySet[Delivery]:
    """Whose turn it is: the longest due of each channel, first of those that work, of these first
    of whom was sent to the longest ago. So each waits for one try of each other, however much
    that one has, and for those that fail only until a round is over."""
    due = Delivery.objects.filter(Delivery.under_way(), channel__isnull=False, due_at__lte=at)
    firsts = due.order_by("channel_id", "due_at", "id").distinct("channel_id")
    return due.filter(id__in=firsts.values("id")).order_by(
        IsNull(F("channel__failing_since"), False),
        Coalesce("channel__tried_at", "channel__made_at"),
        "channel_id",
    )[:MOST_AT_ONCE]


@transaction.atomic
def _take(due: QuerySet[Delivery], at: datetime) -> Sequence[Delivery]:
    """Those that nobody is at, which are the caller's for as long as LEASE."""
    found = due.select_for_update(skip_locked=True, of=("self",))
    taken = list(found.select_related("notice", "user", "channel"))
    ours = Delivery.objects.filter(id__in=[each.id for each in taken])
    ours.update(tries=F("tries") + 1, due_at=at + LEASE)
    for delivery in taken:
        delivery.tries += 1
    return taken


def _try_all(taken: Sequence[Delivery], at: datetime) -> Iterator[tuple[Delivery, str]]:
    """All at once, with what was wrong. What ended by a defect is none of them: it is due again
    after LEASE, as if its sender had died."""
    pool = ThreadPoolExecutor(len(taken))
    tries = {pool.submit(_try, delivery, at): delivery for delivery in taken}
    wait(tries, timeout=ROUND_S)
    pool.shutdown(wait=False, cancel_futures=True)
    for each, delivery in tries.items():
        if not each.done():
            yield delivery, "It gave no answer in time."
        elif defect := each.exception():
            logger.error("delivery %s failed by a defect", delivery.id, exc_info=defect)
        else:
            yield delivery, each.result()


def _try(delivery: Delivery, at: datetime) -> str:
    """What was wrong, "" if nothing was. It may run in any thread: all that it reads of the
    database is there."""
    try:
        if delivery.tries > MOST_TRIES:  # whoever tried died of it, or was killed
            raise Undelivered("No try came to an end.")
        crash("T1")
        if delivery.channel is not None:
            _post(delivery, delivery.channel, at=at)
        elif delivery.user is not None:
            _mail(delivery, delivery.user)
        crash("T2")
    except Undelivered as failure:
        return str(failure)
    return ""


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
    if delivery.channel_id is not None:
        since = Coalesce("failing_since", at) if error else None
        Channel.objects.filter(id=delivery.channel_id).update(failing_since=since)


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
