"""Probes of clusters: what of all that Berth needs there worked when it was tried (ADR 0077)."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from clusters.models.cluster import Cluster
from clusters.port import ProbeStep, Verdict
from controlplane.kernel.models import Row


class ProbeStop(models.TextChoices):
    """What kept a probe from its end."""

    NO_CREDENTIAL = "no-credential"
    UNOPENED = "unopened"  # who tried it has no key for the credential
    BROKEN_OFF = "broken-off"  # it took too long, its processes died, or it was not taken up


class ClusterProbe(Row):
    """Asked for, begun by a worker, ended: with a verdict, the worst of its steps, or, where it
    was kept from that, with what `stopped` it and `why`.

    `credential_version` is of the credential with which it was begun, None before and where there
    was none. `tries` counts the workers that began it; each begins anew, and what one stores after
    another has begun is dropped. `asked_by` is who wanted it, as the audit names people.
    `timed_from` is when it came to wait, or was begun last, by the database's clock: how long it
    may wait, and its worker live, is real time, whatever the clock of the other moments.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="probes", db_index=False
    )
    asked_at = models.DateTimeField()
    asked_by = models.CharField(max_length=150)
    credential_version = models.PositiveIntegerField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    began_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    timed_from = models.DateTimeField(db_default=Now())
    steps = models.JSONField(default=list)
    verdict = models.CharField(max_length=8, blank=True)
    stopped = models.CharField(max_length=16, blank=True)
    why = models.CharField(max_length=500, blank=True)

    class Meta:
        indexes = [models.Index(fields=["cluster", "-id"], name="probe_newest_of_a_cluster")]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster"], condition=Q(ended_at__isnull=True), name="probe_one_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, verdict="", stopped="")
                | Q(
                    ended_at__isnull=False,
                    verdict__in=[each.value for each in Verdict],
                    stopped="",
                )
                | Q(ended_at__isnull=False, verdict="", stopped__in=ProbeStop.values),
                name="probe_ends_one_way",
            ),
        ]

    def __str__(self) -> str:
        return f"probe of {self.cluster.name}"

    @property
    def told(self) -> tuple[ProbeStep, ...]:
        """Its steps so far, in the order in which they were tried."""
        return tuple(
            ProbeStep(step["name"], Verdict(step["verdict"]), step["said"]) for step in self.steps
        )

    @property
    def failures(self) -> int:
        """How many of its steps fail."""
        return sum(step.verdict is Verdict.FAILS for step in self.told)
