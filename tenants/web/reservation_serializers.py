"""What the endpoints of reservations take and give."""

from typing import Any

from rest_framework import serializers

from controlplane.api.fields import Id, Integer, Moment, StrictSerializer, Text
from tenants.services.quotas import MAX_MILLI
from tenants.services.reservations import MAX_NOTE

type Rows = Any  # plain rows


class ReservationOut(serializers.Serializer[Rows]):
    """Thousandths of a flavor that are kept for a project, or for a tenant with all below it (one
    of the two is null), from `starts_at` until `ends_at`, and with a zone each week at the same
    hour there, until `last_ends_at`."""

    id = serializers.UUIDField()
    project = serializers.UUIDField(source="project_id", allow_null=True)
    tenant = serializers.UUIDField(source="tenant_id", allow_null=True)
    flavor = serializers.CharField(source="flavor.name")
    amount_milli = serializers.IntegerField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    zone = serializers.CharField(allow_blank=True)
    last_ends_at = serializers.DateTimeField(allow_null=True)
    note = serializers.CharField(allow_blank=True)
    made_by = serializers.CharField(source="made_by.username")
    made_at = serializers.DateTimeField()


class ReservationIn(StrictSerializer):
    project = Id(required=False, allow_null=True, default=None, help_text="This or the tenant.")
    tenant = Id(required=False, allow_null=True, default=None, help_text="With all below it.")
    flavor = Text(max_length=63)
    amount_milli = Integer(low=1, high=MAX_MILLI, help_text="Thousandths of the flavor.")
    starts_at = Moment(help_text="From when on; it may be past.")
    ends_at = Moment()
    zone = Text(
        max_length=64,
        required=False,
        default="",
        allow_blank=True,
        help_text="By whose clocks a weekly one begins, such as Europe/Berlin.",
    )
    weekly_until = serializers.DateField(
        required=False,
        default=None,
        allow_null=True,
        help_text="Each week anew; the last day in the zone on which it may begin.",
    )
    note = Text(max_length=MAX_NOTE, required=False, default="", allow_blank=True)


class ReservationsQuery(StrictSerializer):
    project = Id(required=False)
    tenant = Id(required=False)
