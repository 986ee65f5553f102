"""Where other systems are told what happens: in the fleet, a tenant or a project."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Length
from django.db.models.lookups import Exact, GreaterThanOrEqual

from clusters import sealing
from controlplane.kernel.models import Row
from tenants.models.notice import Event
from tenants.models.project import Project
from tenants.models.tenant import Tenant

TOLD = tuple(event.value for event in Event if event is not Event.TEST)
"""The events that a channel may be for. Its own tests come without being asked for."""


class ChannelKind(models.TextChoices):
    JSON = "json"  # signed
    SLACK = "slack"  # and what takes the same


class Channel(Row):
    """An address that is told of `events` at its place and below. Neither tenant nor project: of
    the whole fleet.

    The address and the secret that signs are `sealed`, as who knows an address of Slack's may
    write there; `host` is what of it is no secret. `tried_at` is when something was last sent
    there, `failing_since` since when nothing arrives, None where the last try went well.
    """

    tenant = models.ForeignKey(
        Tenant, null=True, blank=True, on_delete=models.PROTECT, related_name="channels"
    )
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.PROTECT, related_name="channels"
    )
    name = models.CharField(max_length=60)
    kind = models.CharField(max_length=5, choices=ChannelKind)
    host = models.CharField(max_length=260)
    events = ArrayField(models.CharField(max_length=20, choices=[(each, each) for each in TOLD]))
    sealed = models.BinaryField()
    made_at = models.DateTimeField()
    tried_at = models.DateTimeField(null=True, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(tenant__isnull=True) | Q(project__isnull=True), name="channel_of_one"
            ),
            models.UniqueConstraint(
                fields=["project", "tenant", "name"],
                nulls_distinct=False,
                name="channel_name_once",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=ChannelKind.values), name="channel_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(events__contained_by=list(TOLD)) & Q(events__len__gte=1),
                name="channel_events_known",
            ),
            models.CheckConstraint(
                condition=Q(
                    GreaterThanOrEqual(Length("sealed"), sealing.SMALLEST),
                    Exact(
                        Func(
                            F("sealed"),
                            Value(1),
                            Value(1),
                            function="substring",
                            output_field=models.BinaryField(),
                        ),
                        Value(bytes([sealing.VERSION])),
                    ),
                ),
                name="channel_is_sealed",
            ),
        ]

    access_path = "project"

    @property
    def context(self) -> bytes:
        """What the box is bound to: moved to another channel's row it does not open."""
        return f"{self._meta.db_table}:{self.id}:address".encode()

    @property
    def key_id(self) -> str:
        """Of the key that opens it, in hexadecimal."""
        return sealing.key_id(bytes(self.sealed)).hex()

    def __str__(self) -> str:
        return self.name
