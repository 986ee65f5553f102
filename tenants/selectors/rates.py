"""Prices over time, as a page tells them."""

from datetime import datetime

from django.db.models import Q, QuerySet
from django.db.models.functions import Upper

from tenants.models import Rate

SHOWN = 200


def in_force(*, at: datetime) -> QuerySet[Rate]:
    """By flavor, the price anywhere before those of single clusters."""
    rows = Rate.objects.filter(during__contains=at)
    return _named(rows).order_by("flavor__name", "cluster__name", "id")


def to_come(*, at: datetime) -> QuerySet[Rate]:
    """Those that begin later, the next first."""
    return _named(Rate.objects.filter(during__startswith__gt=at)).order_by("during", "id")


def over(*, at: datetime) -> QuerySet[Rate]:
    """The last SHOWN that have ended, the latest first."""
    rows = Rate.objects.filter(Q(during__fully_lt=(at, None)))
    return _named(rows).order_by(Upper("during").desc(), "id")[:SHOWN]


def _named(rows: QuerySet[Rate]) -> QuerySet[Rate]:
    return rows.select_related("flavor", "cluster")
