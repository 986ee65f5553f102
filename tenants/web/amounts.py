"""What every endpoint that sets or tries a quota takes."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from controlplane.api.fields import Integer, Moment, StrictSerializer, Text
from tenants.services.enforcement import Excess, begins_at
from tenants.services.quotas import MAX_MILLI, Amounts

ENFORCED = (
    "From then on what is held beyond nominal + borrowing limit is preempted, as far as it may be;"
    " null once no more is held, or where that ends by itself."
)


class AmountsIn(StrictSerializer):
    """A quota as it is to be; `amounts` are those of what was validated."""

    flavor = Text(max_length=63)
    nominal_milli = Integer(high=MAX_MILLI)
    borrowing_limit_milli = Integer(high=MAX_MILLI, allow_null=True)
    lending_limit_milli = Integer(high=MAX_MILLI, allow_null=True)
    excess = serializers.ChoiceField(
        choices=[each.value for each in Excess],
        default=Excess.DRAIN.value,
        help_text="What is held beyond nominal + borrowing limit ends by itself (drain), is"
        " preempted from `enforce_at` on (delay), or now (preempt). What may not be preempted"
        " stays.",
    )
    enforce_at = Moment(required=False, allow_null=True, default=None, help_text="For delay.")
    version = Integer(
        high=2**31 - 1, help_text="The version you saw, 0 where there is no quota yet."
    )


def amounts(body: dict[str, Any], *, at: datetime) -> Amounts:  # Any: validated input
    """Of a valid AmountsIn, at that moment. Raises Invalid."""
    return Amounts(
        nominal_milli=body["nominal_milli"],
        borrowing_limit_milli=body["borrowing_limit_milli"],
        lending_limit_milli=body["lending_limit_milli"],
        enforce_at=begins_at(
            excess=Excess(body["excess"]), delayed_until=body["enforce_at"], at=at
        ),
    )
