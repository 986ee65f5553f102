"""What is told and did not arrive, in the whole installation: by mail, and by channels."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Min, Q, QuerySet
from django.db.models.lookups import IsNull

from tenants.models import Delivery

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Standing:
    """Of messages of one lane: how many were not tried yet or are at their first try, are tried
    again, and were given up within a day; and since when the oldest that is not given up waits,
    None for none."""

    lane: str
    waiting: int
    failing: int
    given_up: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Trouble:
    """How many mails are tried again, and were given up within a day, and of these since when the
    oldest is to be sent, and what was wrong with the newest."""

    failing: int
    given_up: int
    since: datetime
    last_error: str


def standings(*, at: datetime) -> tuple[Standing, ...]:
    """Of each lane. One query."""
    under_way = Delivery.under_way()
    rows = (
        _left(at)
        .annotate(is_mail=IsNull(F("user"), False))
        .values_list("is_mail")
        .annotate(
            waiting=Count("id", filter=under_way & Q(error="")),
            failing=Count("id", filter=under_way & ~Q(error="")),
            given_up=Count("id", filter=Q(failed_at__isnull=False)),
            since=Min("notice__at", filter=under_way),
        )
    )
    found = {is_mail: tuple(row) for is_mail, *row in rows}
    lanes = (("mail", True), ("channels", False))
    return tuple(Standing(lane, *found.get(key, (0, 0, 0, None))) for lane, key in lanes)


def mail_trouble(*, at: datetime) -> Trouble | None:
    """None where all mail arrives. One query, two where it does not."""
    amiss = _left(at).exclude(user=None).exclude(error="")
    given_up = Count("id", filter=Q(failed_at__isnull=False))
    found = amiss.aggregate(all=Count("id"), given_up=given_up, since=Min("notice__at"))
    if found["since"] is None:
        return None
    error = amiss.order_by("-id").values_list("error", flat=True)[0]
    return Trouble(found["all"] - found["given_up"], found["given_up"], found["since"], error)


def _left(at: datetime) -> QuerySet[Delivery]:
    """Under way, or given up within a day."""
    return Delivery.objects.filter(Delivery.under_way() | Q(failed_at__gt=at - DAY))
