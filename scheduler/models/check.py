"""What each check of the rules about rows found, which decides whether anything new may start."""

from django.db import models

from controlplane.kernel.models import Row


class InvariantCheck(Row):
    """One search of the base rows for what breaks the rules. The newest one decides.

    `at` is when it began; `violations` are sentences for people, [] when all holds. By `keys` the
    next check knows what was found (`loop/checking/rules`); more than MOST of them are not all of
    it. `accepted_at` is when an operator said that admission goes on in spite of them.
    """

    at = models.DateTimeField()
    took_ms = models.PositiveIntegerField()
    violations = models.JSONField(default=list, blank=True)
    keys = models.JSONField(default=list, blank=True)
    accepted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["at", "id"], name="check_by_time")]

    @property
    def stops(self) -> bool:
        """Whether nothing new may start, as long as it is the newest."""
        return bool(self.violations) and self.accepted_at is None

    def __str__(self) -> str:
        return f"{len(self.violations)} violations at {self.at}"
