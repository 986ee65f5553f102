"""What projects have used so far, as fair share remembers it."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from django.conf import settings

from controlplane.kernel import bulk, statements

type Past = Mapping[tuple[str, str], int]
"""(project, flavor), both as text → thousandths of the flavor times seconds."""

REMEMBERED = 10
"""Half-lives after which use counts nothing any more: less than a thousandth of it would."""
_UNIT = 2**30

_DECAYED = """
SELECT project_id::text, flavor_id::text, div(total, %s)::bigint FROM (
    SELECT p.project_id, p.flavor_id, sum(p.milli_s::numeric * w.weight) AS total
    FROM tenants_pastuse p JOIN unnest(%s::date[], %s::bigint[]) AS w(day, weight) USING (day)
    GROUP BY 1, 2
) past
"""


def decayed(*, at: datetime) -> Past:
    """What every project has used, by now halved for each half-life since; zeros are left out.

    What was used d full days ago counts 2^(-d / half-life), as usage does in Slurm (its
    PriorityDecayHalfLife, slurm.schedmd.com/priority_multifactor.html#fairshare), in steps of a
    day (UTC). {} when a half-life of 0 switches it off. One query.
    """
    half_life = settings.BERTH_HALF_LIFE_DAYS
    if not half_life:
        return {}
    with statements.cursor() as cursor:
        cursor.execute(_DECAYED, [_UNIT, *_weights(at.astimezone(UTC).date(), half_life)])
        return {(project, flavor): used for project, flavor, used in cursor.fetchall() if used}


@lru_cache(maxsize=1)  # every cycle asks for those of one day
def _weights(today: date, half_life: int) -> tuple[bulk.Array, bulk.Array]:
    """The days that count, and how much of what was used on each does, as arrays."""
    ages = range(REMEMBERED * half_life)
    days = bulk.array(today - timedelta(days=age) for age in ages)
    return days, bulk.array(round(_UNIT * 2 ** (-age / half_life)) for age in ages)


def kept_each_day() -> int:
    """Of 2**30 parts of what is remembered, those that a day leaves; 0 when it is switched off."""
    half_life = settings.BERTH_HALF_LIFE_DAYS
    return round(_UNIT * 2 ** (-1 / half_life)) if half_life else 0


def window_s() -> int:
    """Seconds of steady use that the memory holds: all its weights over days, summed up.

    0 when it is switched off.
    """
    half_life = settings.BERTH_HALF_LIFE_DAYS
    if not half_life:
        return 0
    return round(86_400 / (1 - 2 ** (-1 / half_life)))
