"""With what Berth signs in to a cluster, sealed: see clusters/sealing.py and ADR 0072."""

from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Length
from django.db.models.lookups import Exact, GreaterThanOrEqual

from clusters import credential, sealing
from clusters.models.cluster import Cluster


class ClusterCredential(models.Model):
    """One a cluster. `host`, `expires_at` and `metrics_server` are what of it is no secret: where
    it signs in, until when by its own word, None where it says nothing, and the URL of what
    measures the cluster, "" where nothing does, None of one stored before that was kept.

    `version` grows with each credential that is stored, so that whoever is connected knows;
    sealing the same one under another key leaves it. `set_by` is who stored it, as the audit names
    people.
    """

    cluster = models.OneToOneField(
        Cluster, on_delete=models.PROTECT, primary_key=True, related_name="credential"
    )
    sealed = models.BinaryField()
    host = models.CharField(max_length=260)
    expires_at = models.DateTimeField(null=True, blank=True)
    metrics_server = models.CharField(  # noqa: DJ001  # "" is known to be none
        max_length=credential.LONGEST_SERVER, null=True, blank=True
    )
    version = models.PositiveIntegerField()
    set_at = models.DateTimeField()
    set_by = models.CharField(max_length=150)

    class Meta:
        constraints = [
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
                name="credential_is_sealed",
            ),
        ]

    def __str__(self) -> str:
        return f"credential of {self.cluster.name}"

    @property
    def context(self) -> bytes:
        """What the box is bound to: moved to another cluster's row it does not open."""
        return f"{self._meta.db_table}:{self.cluster_id}:credential".encode()

    @property
    def key_id(self) -> str:
        """Of the key that opens it, in hexadecimal."""
        return sealing.key_id(bytes(self.sealed)).hex()
