"""Idempotency keys: a POST's answer, committed in the same transaction as what it made."""

from django.db import models

from controlplane.kernel.models import Row


class IdempotencyKey(Row):
    """`principal` and `route` scope the key. `digest` is the SHA-256 of the request body."""

    principal = models.CharField(max_length=80)
    route = models.CharField(max_length=200)
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    answer = models.JSONField()
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["principal", "route", "key"], name="idempotency_key_once"
            )
        ]

    def __str__(self) -> str:
        return self.key
