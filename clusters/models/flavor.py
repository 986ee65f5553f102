"""The flavor: what quota and price are written in."""

from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row


class FlavorKind(models.TextChoices):
    """As `scheduler.core.snapshot.FlavorKind`; a test holds the two together."""

    WHOLE = "whole"
    MIG = "mig"
    SHARE = "share"
    CPU = "cpu"


class Isolation(models.TextChoices):
    """As `scheduler.core.snapshot.Isolation`."""

    NONE = "none"
    MEMORY = "memory"
    HARDWARE = "hardware"


class Placing(models.TextChoices):
    """As `scheduler.core.snapshot.Placing`."""

    PACK = "pack"
    SPREAD = "spread"


class Flavor(Row):
    """A device model whole, one MIG profile of it, a share of it, or CPU cores.

    `model` is the product name that nodes report ("" for CPU); `profile` is set for MIG only.
    `placing` says on which of the nodes with room its pods go; it is the one field that changes.
    """

    name = models.CharField(max_length=63, unique=True)
    kind = models.CharField(max_length=8, choices=FlavorKind)
    model = models.CharField(max_length=80, blank=True)
    profile = models.CharField(max_length=20, blank=True)
    isolation = models.CharField(max_length=8, choices=Isolation, default=Isolation.HARDWARE)
    memory_mib = models.BigIntegerField(default=0)
    placing = models.CharField(
        max_length=6, choices=Placing, default=Placing.PACK, db_default=Placing.PACK
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "model", "profile", "isolation"], name="flavor_meaning_once"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=FlavorKind.values) & Q(isolation__in=Isolation.values),
                name="flavor_kind_known",
            ),
            models.CheckConstraint(
                condition=(Q(kind="mig") & ~Q(profile="")) | (~Q(kind="mig") & Q(profile="")),
                name="flavor_profile_for_mig_only",
            ),
            models.CheckConstraint(
                condition=(Q(kind="cpu") & Q(model="")) | (~Q(kind="cpu") & ~Q(model="")),
                name="flavor_model_unless_cpu",
            ),
            models.CheckConstraint(
                condition=(Q(kind="share") & ~Q(isolation="hardware"))
                | (~Q(kind="share") & Q(isolation="hardware")),
                name="flavor_share_isolation",
            ),
            models.CheckConstraint(
                condition=Q(placing="pack") | Q(placing="spread", kind__in=["whole", "cpu"]),
                name="flavor_spread_whole_or_cpu",
            ),
            models.CheckConstraint(
                condition=Q(name__regex=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"),
                name="flavor_name_plain",
            ),
        ]

    def __str__(self) -> str:
        return self.name
