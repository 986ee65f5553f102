"""What each check of the promises found, which decides whether anything new may start."""

from django.db import models

from controlplane.kernel.models import Row


class InvariantCheck(Row):
    """One derivation of promises from the base rows. The newest one decides.

    `at` is when it began; `violations` are sentences, [] when all hold. `accepted_at` is when an
    operator said that admission goes on in spite of them.
    """

    at = models.DateTimeField()
    took_ms = models.PositiveIntegerField()
    violations = models.JSONField(default=list, blank=True)
    accepted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["at", "id"], name="check_by_time")]

    @property
    def stops(self) -> bool:
        """Whether nothing new may start, as long as it is the newest."""
        return bool(self.violations) and self.accepted_at is None

    def __str__(self) -> str:
        return f"{len(self.violations)} violations at {self.at}"
