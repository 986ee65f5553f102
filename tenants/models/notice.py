"""What people are told, and to whom each of it still has to go: an outbox."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row
from tenants.models.project import Project


class Event(models.TextChoices):
    REQUEST_OPENED = "request.opened"
    REQUEST_GRANTED = "request.granted"
    REQUEST_DENIED = "request.denied"
    GRANT_ENDING = "grant.ending"
    GRANT_ENDED = "grant.ended"
    WORK_STARTED = "work.started"
    WORK_IDLE = "work.idle"
    WORK_STOPPED = "work.stopped"
    WORK_ENDED = "work.ended"
    BUDGET_WARNED = "budget.warned"
    BUDGET_USED_UP = "budget.used-up"
    REVIEW_DUE = "review.due"
    REVIEW_FROZE = "review.froze"
    TEST = "channel.test"


OF_WORK = (Event.WORK_STARTED, Event.WORK_IDLE, Event.WORK_STOPPED, Event.WORK_ENDED)
"""Those of which people say themselves whether they want mail of their own work."""
OF_BUDGETS = (Event.BUDGET_WARNED, Event.BUDGET_USED_UP)
OF_REVIEWS = (Event.REVIEW_DUE, Event.REVIEW_FROZE)
"""That the quota of a project waits for somebody to confirm it."""


class Notice(Row):
    """What came to pass, written down in the transaction in which it did; of work, what did in
    some time of one submitter's in one project (ADR 0121).

    Of a tenant's budget there is no project, nor of a channel's test, where the channel is none's.
    `cause` says which: what has been told once is never told again. `body` is all that is told of
    it, as JSON; its id goes with it wherever it is sent, so that who gets it twice can drop one.
    """

    event = models.CharField(max_length=20, choices=Event)
    cause = models.CharField(max_length=80, unique=True)
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.PROTECT, related_name="notices"
    )
    body = models.JSONField()
    at = models.DateTimeField()

    access_path = "project"

    def __str__(self) -> str:
        return self.cause


class Delivery(Row):
    """A notice on its way to one receiver, by mail or by a channel. It is due at `due_at`, or,
    while somebody sends it, taken over then; `tries` is how often that was begun. Sent or given
    up, it is over."""

    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="deliveries")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="deliveries",
    )
    channel = models.ForeignKey(
        "tenants.Channel",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="deliveries",
    )
    due_at = models.DateTimeField()
    tries = models.PositiveSmallIntegerField(default=0, db_default=0)
    sent_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(fields=["notice", "user"], name="delivery_once_a_user"),
            models.UniqueConstraint(fields=["notice", "channel"], name="delivery_once_a_channel"),
            models.CheckConstraint(
                condition=Q(user__isnull=False, channel__isnull=True)
                | Q(user__isnull=True, channel__isnull=False),
                name="delivery_to_one",
            ),
            models.CheckConstraint(
                condition=Q(sent_at__isnull=True) | Q(failed_at__isnull=True),
                name="delivery_sent_or_failed",
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at"],
                condition=Q(sent_at__isnull=True, failed_at__isnull=True),
                name="delivery_under_way",
            ),
            models.Index(
                fields=["failed_at"],
                condition=Q(failed_at__isnull=False),
                name="delivery_given_up",
            ),
        ]

    @staticmethod
    def under_way() -> Q:
        return Q(sent_at__isnull=True, failed_at__isnull=True)

    def __str__(self) -> str:
        return f"{self.notice_id} to {self.user_id or self.channel_id}"
