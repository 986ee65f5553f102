"""What is permitted and wanted of what is submitted: of the fleet, of a tenant with all below it,
or of a project."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row
from tenants.models.project import Project
from tenants.models.tenant import Tenant
from tenants.policy import (
    FIELDS,
    MAX_GPUS_MILLI,
    MAX_PODS,
    MAX_RUN_TIME_S,
    PRIORITY_CLASSES,
    Rules,
)


def _in_range(column: str, most: int) -> Q:
    return Q((f"{column}__isnull", True)) | Q((f"{column}__gte", 1), (f"{column}__lte", most))


def _is_object(column: str) -> Q:
    kind = models.Func(models.F(column), function="jsonb_typeof", output_field=models.TextField())
    return Q(models.lookups.Exact(kind, models.Value("object")))


class SubmitPolicy(Row):
    """The columns are those of `tenants.policy.Rules`. Neither project nor tenant: the fleet's.

    `is_from_above`: somebody with a role above the place said it, so its own people don't change
    it. `version` counts edits, as that of a quota does.
    """

    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.PROTECT, related_name="policies"
    )
    tenant = models.ForeignKey(
        Tenant, null=True, blank=True, on_delete=models.PROTECT, related_name="policies"
    )
    max_run_time_s = models.IntegerField(null=True, blank=True)
    max_gpus_milli = models.BigIntegerField(null=True, blank=True)
    max_pods = models.IntegerField(null=True, blank=True)
    priority_classes = ArrayField(models.CharField(max_length=8), default=list, blank=True)
    images = ArrayField(models.CharField(max_length=300), default=list, blank=True)
    required_labels = models.JSONField(default=dict, blank=True)
    forbidden_fields = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    default_run_time_s = models.IntegerField(null=True, blank=True)
    default_priority_class = models.CharField(max_length=8, default="", blank=True)
    default_labels = models.JSONField(default=dict, blank=True)
    is_from_above = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        verbose_name = "policy"
        verbose_name_plural = "policies"
        constraints = [
            models.CheckConstraint(
                condition=Q(project__isnull=True) | Q(tenant__isnull=True), name="policy_of_one"
            ),
            models.UniqueConstraint(
                fields=["project", "tenant"], nulls_distinct=False, name="policy_once_a_place"
            ),
            models.CheckConstraint(
                condition=_in_range("max_run_time_s", MAX_RUN_TIME_S),
                name="policy_max_run_time_in_range",
            ),
            models.CheckConstraint(
                condition=_in_range("default_run_time_s", MAX_RUN_TIME_S),
                name="policy_default_run_time_in_range",
            ),
            models.CheckConstraint(
                condition=_in_range("max_gpus_milli", MAX_GPUS_MILLI),
                name="policy_max_gpus_in_range",
            ),
            models.CheckConstraint(
                condition=_in_range("max_pods", MAX_PODS), name="policy_max_pods_in_range"
            ),
            models.CheckConstraint(
                condition=Q(priority_classes__contained_by=list(PRIORITY_CLASSES)),
                name="policy_priority_classes_known",
            ),
            models.CheckConstraint(
                condition=Q(default_priority_class__in=["", *PRIORITY_CLASSES]),
                name="policy_default_priority_class_known",
            ),
            models.CheckConstraint(
                condition=Q(forbidden_fields__contained_by=list(FIELDS)),
                name="policy_forbidden_fields_known",
            ),
            models.CheckConstraint(
                condition=_is_object("required_labels") & _is_object("default_labels"),
                name="policy_labels_are_objects",
            ),
        ]

    access_path = "project"

    @property
    def rules(self) -> Rules:
        return Rules(
            max_run_time_s=self.max_run_time_s,
            max_gpus_milli=self.max_gpus_milli,
            max_pods=self.max_pods,
            priority_classes=tuple(self.priority_classes),
            images=tuple(self.images),
            required_labels={k: tuple(values) for k, values in self.required_labels.items()},
            forbidden_fields=tuple(self.forbidden_fields),
            default_run_time_s=self.default_run_time_s,
            default_priority_class=self.default_priority_class,
            default_labels=self.default_labels,
        )

    def __str__(self) -> str:
        return str(self.project or self.tenant or "fleet")
