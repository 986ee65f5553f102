"""Attacks on prices, metered use and charges."""

from datetime import timedelta

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Cluster, Flavor
from controlplane.kernel.ids import uuid7
from tenants.models import Charge, PastUse, Project, Rate, UsageInterval
from tests.constraints.attack import Attack
from tests.constraints.moves import (
    Sql,
    Statement,
    change,
    copy,
    empty,
    insert_like,
    remove,
)
from tests.constraints.rows import HOUR, NOON, make

HALF = timedelta(minutes=30)
LATER = DateTimeTZRange(NOON + HALF, NOON + HALF + HOUR)
NEXT_HOUR = DateTimeTZRange(NOON + HOUR, NOON + 2 * HOUR)


def _twin(charge: Charge) -> UsageInterval:
    """As much used, in another placement of the same workload; not charged yet."""
    usage = charge.usage
    return make(
        UsageInterval,
        project=usage.project,
        flavor=usage.flavor,
        cluster=usage.cluster,
        user=usage.user,
        workload_id=usage.workload_id,
    )


def _charge_of_twin(**wrong: object) -> Statement:
    """What the first was charged, charged to its twin, with one thing wrong."""
    charge = make(Charge)
    return insert_like(charge, usage_id=_twin(charge).pk, **wrong)


def _price_of_another_flavor() -> Statement:
    charge = make(Charge)
    rate = make(Rate, currency=charge.currency)
    return insert_like(charge, usage_id=_twin(charge).pk, rate_id=rate.pk)


def _correction(**wrong: object) -> Statement:
    charge = make(Charge)
    return insert_like(charge, **{"corrects_id": charge.pk, "amount": 0, **wrong})


def _correction_of_itself() -> Statement:
    id = uuid7()
    return _correction(id=id, corrects_id=id)


def _corrections_of_each_other() -> Statement:
    charge, a, b = make(Charge), uuid7(), uuid7()
    usage = _twin(charge).pk
    first, before = insert_like(charge, id=a, corrects_id=b, usage_id=usage)
    second, after = insert_like(charge, id=b, corrects_id=a, usage_id=usage)
    return f"WITH first AS ({first}) {second}", [*before, *after]


def _correction_in_another_currency() -> Statement:
    charge = make(Charge)
    rate = make(Rate, flavor=charge.flavor, during=NEXT_HOUR, currency="XXX")
    return insert_like(charge, corrects_id=charge.pk, rate_id=rate.pk, currency="XXX")


def _refund_after_a_refund() -> Statement:
    charge = make(Charge, amount=3)
    make(Charge, usage=charge.usage, rate=charge.rate, corrects=charge, amount=-2)
    return insert_like(charge, corrects_id=charge.pk, amount=-2)


RATES = (
    Attack(
        "rate_price_not_negative",
        "use earns money",
        change(Rate, price_per_hour=-1),
        behind=("rate_only_ends",),
    ),
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
    *(
        Attack("rate_only_ends", f"a price {what}", change(Rate, **columns))
        for what, columns in (
            ("was another", {"price_per_hour": 2}),
            ("was in another currency", {"currency": "XXX"}),
            ("was another flavor's", {"flavor_id": lambda: make(Flavor).pk}),
            ("was one cluster's", {"cluster_id": lambda: make(Cluster).pk}),
            ("began later", {"during": DateTimeTZRange(NOON + HALF, NOON + HOUR)}),
            ("began at once", {"during": DateTimeTZRange(None, NOON + HOUR)}),
            ("began after its moment", {"during": DateTimeTZRange(NOON, NOON + HOUR, "()")}),
            ("never was", {"during": Sql("'empty'")}),
        )
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
            ("ends in infinity", Sql("'[2030-01-01, infinity)'")),
            ("began in infinity", Sql("'[-infinity, 2030-01-01)'")),
            ("holds its end", DateTimeTZRange(NOON, NOON + HOUR, "[]")),
            ("lacks its beginning", DateTimeTZRange(NOON, NOON + HOUR, "()")),
        )
    ),
    Attack("usage_append_only", "use is made smaller", change(UsageInterval, amount_milli=1)),
    Attack("usage_append_only", "use is forgotten", remove(UsageInterval)),
    Attack(
        "usage_never_emptied",
        "all use is forgotten",
        empty(UsageInterval),
        behind=("charge_never_emptied",),
    ),
)

CHARGES = (
    Attack("charge_once_a_usage", "an interval is charged twice", copy(Charge)),
    Attack(
        "charge_negative_only_corrects",
        "a refund corrects nothing",
        lambda: _charge_of_twin(amount=-1),
    ),
    Attack("charge_append_only", "a charge is made smaller", change(Charge, amount=0)),
    Attack("charge_append_only", "a charge is forgotten", remove(Charge)),
    Attack("charge_never_emptied", "nobody pays for anything", empty(Charge)),
    Attack(
        "charge_fits",
        "another project pays",
        lambda: _charge_of_twin(project_id=lambda: make(Project).pk),
    ),
    Attack(
        "charge_fits",
        "another flavor is charged than was used",
        lambda: _charge_of_twin(flavor_id=lambda: make(Flavor).pk),
    ),
    Attack(
        "charge_fits",
        "another workload is charged than ran",
        lambda: _charge_of_twin(workload_id=uuid7()),
    ),
    Attack(
        "charge_fits",
        "a price in one currency is charged in another",
        lambda: _charge_of_twin(currency="XXX"),
    ),
    Attack("charge_fits", "another flavor's price is charged", _price_of_another_flavor),
    *(
        Attack("correction_fits", sentence, move, error="correction_names_a_charge")
        for sentence, move in (
            (
                "a correction is of another interval's charge",
                lambda: _correction(corrects_id=lambda: make(Charge).pk),
            ),
            ("a correction is of itself", _correction_of_itself),
            ("two corrections are of each other", _corrections_of_each_other),
            ("a correction is in another currency", _correction_in_another_currency),
        )
    ),
    *(
        Attack("correction_fits", sentence, move, error="charges_not_negative")
        for sentence, move in (
            ("more is given back than was charged", lambda: _correction(amount=-2)),
            ("two refunds give back more than was charged", _refund_after_a_refund),
        )
    ),
)

PAST = (
    Attack("past_use_once_a_day", "a day counts twice", copy(PastUse)),
    Attack("past_use_positive", "a project has used nothing", change(PastUse, milli_s=0)),
)

ATTACKS = RATES + USAGE + CHARGES + PAST
