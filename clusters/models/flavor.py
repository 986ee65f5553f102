"""The flavor: what quota and price are written in."""

import re
from collections.abc import Mapping

from django.db import models
from django.db.models import Q

from clusters import stock
from clusters.origin import CapacityType
from controlplane.kernel.models import Row


class FlavorKind(models.TextChoices):
    """As `scheduler.core.snapshot.FlavorKind`; a test holds the two together."""

    WHOLE = "whole"
    MIG = "mig"
    SHARE = "share"
    CPU = "cpu"
    MODEL = "model"


class Isolation(models.TextChoices):
    """As `scheduler.core.snapshot.Isolation`."""

    NONE = "none"
    MEMORY = "memory"
    HARDWARE = "hardware"


class Placing(models.TextChoices):
    """As `scheduler.core.snapshot.Placing`."""

    PACK = "pack"
    SPREAD = "spread"


SEVENTHS = ".sevenths"
"""How the names of flavors of kind MODEL end, and no others': amounts are read beside names."""


VENDORS: Mapping[str, tuple[str, ...]] = {
    "nvidia": (
        *("nvidia", "tesla", "geforce", "quadro", "grid", "titan", "rtx"),
        *("a", "b", "gb", "gh", "h", "k", "l", "m", "p", "t", "v"),  # "NVIDIA-" is left out
    ),
    "amd": ("amd", "instinct", "radeon", "mi"),
    "intel": ("intel", "gaudi", "arc", "flex", "max"),
}
"""Makers of devices, and how the product names that nodes report of theirs begin, up to the first
character that is no letter."""


class Flavor(Row):
    """A device model whole, one MIG profile of it, a share of it, or CPU cores; or, of kind MODEL,
    a quota over all of a model, which no work can ask for and which counts sevenths of a device.

    `model` is the product name that nodes report ("" for CPU); `profile` is set for MIG only. With
    a `capacity` it is of devices on nodes of that type alone, and those are of no flavor without.
    `placing` says on which of the nodes with room its pods go; it is the one field that changes.
    """

    name = models.CharField(max_length=63, unique=True)
    kind = models.CharField(max_length=8, choices=FlavorKind)
    model = models.CharField(max_length=80, blank=True)
    capacity = models.CharField(max_length=9, blank=True, default="", db_default="")
    profile = models.CharField(max_length=20, blank=True)
    isolation = models.CharField(max_length=8, choices=Isolation, default=Isolation.HARDWARE)
    memory_mib = models.BigIntegerField(default=0)
    placing = models.CharField(
        max_length=6, choices=Placing, default=Placing.PACK, db_default=Placing.PACK
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "model", "capacity", "profile", "isolation"],
                name="flavor_meaning_once",
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
                condition=Q(capacity__in=[each.value for each in CapacityType])
                & (Q(capacity="") | ~Q(kind="cpu")),
                name="flavor_capacity_of_devices",
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
            models.CheckConstraint(
                condition=(Q(kind="model") & Q(name__endswith=SEVENTHS))
                | (~Q(kind="model") & ~Q(name__endswith=SEVENTHS)),
                name="flavor_name_tells_sevenths",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def stock(self) -> str:
        """The devices that it is of (clusters/stock.py)."""
        return stock.name(model=self.model, capacity=self.capacity)

    @property
    def vendor(self) -> str:
        """Who makes its devices, one of VENDORS; "" when the model does not tell."""
        first = re.split(r"[^a-z]", self.model.lower(), maxsplit=1)[0]
        return next((vendor for vendor, words in VENDORS.items() if first in words), "")


class FlavorPart(Row):
    """What one whole unit of `part` counts of its model's quota, in thousandths of `whole`, of
    kind MODEL: 7000 is a device. As `scheduler.core.quota.equivalents` has it."""

    part = models.OneToOneField(Flavor, on_delete=models.PROTECT, related_name="part_of")
    whole = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="parts")
    milli = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(milli__gte=1, milli__lte=7000), name="flavor_part_of_a_device"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.part_id} {self.whole_id} {self.milli}"
