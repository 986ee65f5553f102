"""Who is signed in, where."""

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import models
from django.db.models import F, Q

from controlplane.kernel.models import Row

MAX_AGENT = 300


class UserSession(Row):
    """One browser's session of a user: it goes with Django's own row, and that with it.

    `address` and `agent` are what the browser was last seen with, `agent` cut to MAX_AGENT.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sessions"
    )
    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="+")
    began_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    address = models.CharField(max_length=45, blank=True)
    agent = models.CharField(max_length=MAX_AGENT, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(seen_at__gte=F("began_at")), name="user_session_seen_since_it_began"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.agent}"
