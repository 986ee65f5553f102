"""Whether pods of a cluster see devices that they never asked for (ADR 0086)."""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from clusters.models.cluster import Cluster
from controlplane.kernel.models import Row

SAFE_FOR = timedelta(days=2)
"""How long an answer holds: it is asked for once a day."""


class ExposureVerdict(models.TextChoices):
    UNKNOWN = "unknown"  # nobody looked lately, or there was no answer
    SAFE = "safe"  # a pod that asked for no device saw none, on each node that has some
    UNSAFE = "unsafe"  # it saw some


class Exposure(Row):
    """One a cluster. `answers` are by node, each with `saw`, a line for each device that a pod saw
    there at `seen_at` (ISO 8601), [] for none, None where it gave no answer, `why` it gave none,
    and `asked_at`, of the try that looked there last. The verdict is of all of them: of UNSAFE
    `node`, `saw` and `seen_at` are one of those where it is so, of SAFE `seen_at` is the oldest
    answer's. `why` is what the last probe, which ended at `ended_at`, could not look at, or what
    keeps the one that is under way. UNSAFE stays until a pod sees none there, or the node is gone.

    While a probe is under way `asked_at` is when it was asked for, by `asked_by`, and which try
    this is; `timed_from` is when it went on to the node at hand, by the database's clock, as how
    long that may take is real time. `credential_version` is of the credential with which it looks,
    `tried_node` where, and `pod_uid` of its pod from when that is made until it is taken away.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.PROTECT, related_name="exposure")
    verdict = models.CharField(
        max_length=7, choices=ExposureVerdict, default=ExposureVerdict.UNKNOWN
    )
    answers = models.JSONField(default=dict)
    saw = models.JSONField(default=list)
    seen_at = models.DateTimeField(null=True, blank=True)
    node = models.CharField(max_length=253, blank=True)
    why = models.CharField(max_length=500, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    asked_at = models.DateTimeField(null=True, blank=True)
    asked_by = models.CharField(max_length=150, blank=True)
    timed_from = models.DateTimeField(null=True, blank=True)
    credential_version = models.PositiveIntegerField(null=True, blank=True)
    tried_node = models.CharField(max_length=253, blank=True)
    pod_uid = models.CharField(max_length=253, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(verdict=ExposureVerdict.UNKNOWN)
                | Q(verdict=ExposureVerdict.SAFE, saw=[], seen_at__isnull=False)
                | (Q(verdict=ExposureVerdict.UNSAFE, seen_at__isnull=False) & ~Q(saw=[])),
                name="exposure_verdict_is_of_what_was_seen",
            ),
            models.CheckConstraint(
                condition=Q(asked_at__isnull=True) | Q(timed_from__isnull=False),
                name="exposure_under_way_is_timed",
            ),
        ]

    def __str__(self) -> str:
        return f"exposure of {self.cluster.name}"

    @property
    def is_unsafe(self) -> bool:
        return self.verdict == ExposureVerdict.UNSAFE

    def believed(self, *, at: datetime) -> "Exposure":
        """Itself, not known where it was safe too long ago, whether or not a sweep has come."""
        if self.verdict == ExposureVerdict.SAFE and self.seen_at and self.seen_at <= at - SAFE_FOR:
            self.verdict = ExposureVerdict.UNKNOWN
        return self

    @property
    def unsafe_nodes(self) -> list[str]:
        """By name."""
        return sorted(name for name, answer in self.answers.items() if answer["saw"])
