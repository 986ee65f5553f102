"""The append-only record of who did what, and the chains that show whether it is what was written.
Triggers refuse any change of a row."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from controlplane.kernel.models import Row


class AuditEvent(Row):
    """`actor` is `user:<id>`, `token:<id>`, `provider:<name>` or `system:<part>`; before and after
    hold allow-listed fields.

    tenant_id and project_id scope who may read it; both null is an installation-wide event.
    """

    at = models.DateTimeField()
    actor = models.CharField(max_length=80)
    actor_name = models.CharField(max_length=150, blank=True)
    action = models.CharField(max_length=60)
    target_type = models.CharField(max_length=40)
    target_id = models.UUIDField()
    tenant_id = models.UUIDField(null=True, blank=True)
    project_id = models.UUIDField(null=True, blank=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["target_id"], name="audit_by_target"),
            models.Index(fields=["project_id", "id"], name="audit_by_project"),
            models.Index(
                fields=["tenant_id", "id"],
                name="audit_by_tenant",
                condition=models.Q(project_id__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target_type} {self.target_id}"


class AuditLink(Row):
    """The audit rows of one statement, as a link of a chain; the database alone makes it (ADR
    0099).

    `events` are their ids in order, of which the first is its own, and `digests` the SHA-256 of
    each, one after the other. `position` counts the links of a chain from 1 and is null until the
    transaction ends, as is `digest`, the SHA-256 of the digest before it and `digests`.
    """

    chain = models.SmallIntegerField()
    position = models.BigIntegerField(null=True)
    events = ArrayField(models.UUIDField())
    digests = models.BinaryField()
    digest = models.BinaryField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["chain", "position"], name="audit_link_place_once"),
            models.CheckConstraint(
                condition=models.Q(position__isnull=True, digest__isnull=True)
                | models.Q(position__isnull=False, digest__isnull=False),
                name="audit_link_placed_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.chain}/{self.position}"
