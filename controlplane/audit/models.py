"""The append-only record of who did what. A trigger refuses any change of a row."""

from django.db import models

from controlplane.kernel.models import Row


class AuditEvent(Row):
    """`actor` is `user:<id>`, `token:<id>` or `system:<part>`; before and after hold allow-listed
    fields.

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
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target_type} {self.target_id}"
