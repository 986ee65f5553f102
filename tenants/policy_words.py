"""What a policy says, as people read it. Pure."""

from collections.abc import Iterable, Mapping

from tenants.policy import InForce, in_words

RULES = {
    "max_run_time_s": "Runs at most",
    "max_gpus_milli": "GPUs of one workload at most",
    "max_pods": "Pods of one workload at most",
    "priority_classes": "Priorities",
    "images": "Images",
    "required_labels": "Labels that are wanted",
    "forbidden_fields": "Left to Berth",
    "default_run_time_s": "Run-time limit of what says none",
    "default_priority_class": "Priority of what says none",
    "default_labels": "Labels of what does not have them",
    "idle_timeout_s": "Idle work is freed after",
    "min_run_time_s": "Work may be evicted after",
}
"""As people read them."""


def told(rules: Iterable[InForce]) -> list[tuple[str, str, str]]:
    """(what, as it is read, whose word that is)."""
    return [(RULES[each.rule], _read(each), each.by) for each in rules]


def _read(rule: InForce) -> str:
    value = rule.value
    if value == 0:
        return "any time" if rule.rule == "min_run_time_s" else "never"
    if isinstance(value, int):
        return in_words(rule.rule, value)
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        return ", ".join(value)
    return "; ".join(
        f"{key}: {said if isinstance(said, str) else ', '.join(said) or 'any'}"
        for key, said in value.items()
    )
