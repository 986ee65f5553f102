"""Attacks on what may be submitted."""

from tenants.models import Project, SubmitPolicy, Tenant
from tenants.policy import MAX_GPUS_MILLI, MAX_PODS, MAX_RUN_TIME_S
from tests.constraints.attack import Attack
from tests.constraints.moves import Move, Sql, Statement, change, insert_like
from tests.constraints.rows import Values, make

OF_PROJECT: Values = {"project": lambda: make(Project)}
OF_TENANT: Values = {"tenant": lambda: make(Tenant)}


def _again(of: Values) -> Move:
    def prepare() -> Statement:
        return insert_like(make(SubmitPolicy, **of))

    return prepare


ATTACKS = (
    Attack(
        "policy_of_one",
        "a policy is a project's and a tenant's",
        change(SubmitPolicy, OF_PROJECT, tenant_id=lambda: make(Tenant).pk),
    ),
    *(
        Attack("policy_once_a_place", what, _again(of))
        for what, of in (
            ("a project has two policies", OF_PROJECT),
            ("a tenant has two policies", OF_TENANT),
            ("the fleet has two policies", {}),
        )
    ),
    *(
        Attack(name, what, change(SubmitPolicy, OF_TENANT, **columns))
        for name, what, columns in (
            ("policy_max_run_time_in_range", "nothing may run", {"max_run_time_s": 0}),
            (
                "policy_max_run_time_in_range",
                "the limit is none",
                {"max_run_time_s": MAX_RUN_TIME_S + 1},
            ),
            (
                "policy_default_run_time_in_range",
                "all is stopped at once",
                {"default_run_time_s": 0},
            ),
            ("policy_max_gpus_in_range", "no GPU may be used", {"max_gpus_milli": 0}),
            (
                "policy_max_gpus_in_range",
                "a sum overflows",
                {"max_gpus_milli": MAX_GPUS_MILLI + 1},
            ),
            ("policy_max_pods_in_range", "less than no pods", {"max_pods": -1}),
            ("policy_max_pods_in_range", "more than there are", {"max_pods": MAX_PODS + 1}),
            (
                "policy_priority_classes_known",
                "nobody has that priority",
                {"priority_classes": ["top"]},
            ),
            (
                "policy_default_priority_class_known",
                "all have a priority that is none",
                {"default_priority_class": "top"},
            ),
            (
                "policy_forbidden_fields_known",
                "a field is forbidden that is none",
                {"forbidden_fields": ["name"]},
            ),
            (
                "tenants_submitpolicy_version_check",
                "a policy was edited less than never",
                {"version": -1},
            ),
        )
    ),
    *(
        Attack(
            "policy_labels_are_objects",
            f"{column} have no values",
            change(SubmitPolicy, OF_TENANT, **{column: Sql("'[]'::jsonb")}),
        )
        for column in ("required_labels", "default_labels")
    ),
)
