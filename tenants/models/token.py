"""API tokens: only a hash is kept."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row
from tenants.models.project import Project


class Scope(models.TextChoices):
    READ = "read"
    SUBMIT = "submit"  # submit and cancel workloads
    GATE = "gate"  # see and decide gates, nothing else
    QUOTA = "quota"  # ask for quota
    OPERATE = "operate"  # clusters, quotas


class Token(Row):
    """A key of one user, never stronger than that user, narrowed by scopes and perhaps a project.

    `digest` is the SHA-256 of the secret part, in hex. `made_by` made it for a service account,
    and is null where its user did. `revoked_by` is who ended it, as the audit calls them.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens"
    )
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="tokens"
    )
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope))
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="tokens_made",
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=150, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(scopes__contained_by=list(Scope.values)) & Q(scopes__len__gte=1),
                name="token_scopes_known",
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=models.F("created_at")), name="token_expires_later"
            ),
            models.CheckConstraint(
                condition=Q(revoked_at__isnull=False) | Q(revoked_by=""),
                name="token_revoked_if_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return self.name
