"""Who may plan, and what each cycle decided."""

from django.db import models

from controlplane.kernel.models import Row


class SchedulerLease(models.Model):
    """One row a shard. `epoch` is the fencing number; times are the database's (reliability
    4.2)."""

    shard = models.CharField(max_length=40, primary_key=True)
    epoch = models.BigIntegerField(default=0)
    holder = models.CharField(max_length=100, blank=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.shard}@{self.epoch}"


class CycleRecord(Row):
    """One load-decide-apply. Durations in milliseconds; `plan` holds the decisions that were
    new, `faults` for each kind of fault of the snapshot how many there were, and the first."""

    shard = models.CharField(max_length=40)
    epoch = models.BigIntegerField()
    at = models.DateTimeField()
    pending_count = models.PositiveIntegerField()
    holding_count = models.PositiveIntegerField()
    admitted_count = models.PositiveIntegerField()
    refused_count = models.PositiveIntegerField()
    preempted_count = models.PositiveIntegerField()
    load_ms = models.PositiveIntegerField()
    plan_ms = models.PositiveIntegerField()
    apply_ms = models.PositiveIntegerField()
    plan = models.JSONField(default=dict)
    faults = models.JSONField(default=dict, blank=True)

    class Meta:
        indexes = [models.Index(fields=["at"], name="cycle_by_moment")]

    def __str__(self) -> str:
        return f"{self.shard} {self.at}"


class CycleInput(models.Model):
    """What a cycle was planned from (`loop/recording/inputs`), compressed by zlib. It goes with
    its record.

    `start_byte` counts the bytes of all payloads before it, since the first. `digest` is that of
    the plan and `schema` that of the snapshot; "" and 0 of what an older version stored. What was
    too large to be kept has no payload, and schema 0.
    `outdated`: a later cycle, whose inputs are not kept, told somebody another kind of reason, or
    not all that the plan lets in has started.
    """

    cycle = models.OneToOneField(
        CycleRecord, primary_key=True, on_delete=models.DB_CASCADE, related_name="input"
    )
    payload = models.BinaryField()
    start_byte = models.BigIntegerField(db_index=True)
    digest = models.CharField(max_length=64, default="", db_default="")
    schema = models.PositiveSmallIntegerField(default=0, db_default=0)
    outdated = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return f"{len(self.payload)} bytes of {self.cycle_id}"
