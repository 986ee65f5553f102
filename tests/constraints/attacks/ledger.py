"""Attacks on prices, metered use and charges."""

from datetime import timedelta

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Cluster
from tenants.models import Charge, Rate, UsageInterval
from tests.constraints.attack import Attack
from tests.constraints.moves import Sql, change, copy, remove
from tests.constraints.rows import HOUR, NOON, make

HALF = timedelta(minutes=30)
LATER = DateTimeTZRange(NOON + HALF, NOON + HALF + HOUR)

RATES = (
    Attack("rate_price_not_negative", "use earns money", change(Rate, price_per_hour=-1)),
    Attack(
        "rate_one_at_a_time",
        "a flavor has two prices in one cluster",
        copy(Rate, {"cluster": lambda: make(Cluster)}, during=LATER),
    ),
    Attack(
        "rate_one_at_a_time_anywhere",
        "a flavor has two prices in any cluster",
        copy(Rate, during=LATER),
    ),
)

USAGE = (
    Attack(
        "usage_metered_once", "half an hour is metered twice", copy(UsageInterval, during=LATER)
    ),
    Attack("usage_metered_once", "the same interval is metered twice", copy(UsageInterval)),
    Attack(
        "usage_amount_positive",
        "nothing was used",
        copy(UsageInterval, placement_id=Sql("gen_random_uuid()"), amount_milli=0),
    ),
    Attack(
        "usage_amount_positive",
        "use is given back",
        copy(UsageInterval, placement_id=Sql("gen_random_uuid()"), amount_milli=-1),
    ),
    *(
        Attack(
            "usage_interval_closed",
            f"an interval {what}",
            copy(UsageInterval, placement_id=Sql("gen_random_uuid()"), during=during),
        )
        for what, during in (
            ("never ends", DateTimeTZRange(NOON, None)),
            ("never began", DateTimeTZRange(None, NOON)),
            ("is empty", Sql("'empty'")),
        )
    ),
    Attack("usage_append_only", "use is made smaller", change(UsageInterval, amount_milli=1)),
    Attack("usage_append_only", "use is forgotten", remove(UsageInterval)),
)

CHARGES = (
    Attack("charge_once_a_usage", "an interval is charged twice", copy(Charge)),
    Attack(
        "charge_negative_only_corrects",
        "a refund corrects nothing",
        copy(Charge, usage_id=lambda: make(UsageInterval).pk, amount=-1),
    ),
    Attack("charge_append_only", "a charge is made smaller", change(Charge, amount=0)),
    Attack("charge_append_only", "a charge is forgotten", remove(Charge)),
)

ATTACKS = RATES + USAGE + CHARGES
