"""What a held amount costs. Pure: Decimal in, Decimal out."""

from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Decimal

MICRO = Decimal("0.000001")
_MILLI_MICROSECONDS_PER_HOUR = Decimal(1000) * 3600 * 1_000_000


def charge(*, amount_milli: int, held: timedelta, price_per_hour: Decimal) -> Decimal:
    """Price of `amount_milli` thousandths of a flavor held for `held`, to six decimals.

    Raises ValueError for a negative time or amount: corrections are rows of their own.
    """
    if amount_milli < 0 or held < timedelta(0):
        raise ValueError(f"negative usage: {amount_milli} for {held}")
    # Exact in integers up to the one division; halves go to even, so sums don't drift.
    unit_time = Decimal(amount_milli * (held // timedelta(microseconds=1)))
    return (unit_time * price_per_hour / _MILLI_MICROSECONDS_PER_HOUR).quantize(
        MICRO, rounding=ROUND_HALF_EVEN
    )
