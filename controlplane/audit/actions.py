"""All that can be done and is audited, with the fields of it that may be told. A closed table:
what is not in it is refused when it is recorded, so no secret and no private text slips in with a
new field."""

from collections.abc import Mapping

_PRIORITY = "priority_class to among"
_GATED = "gate state note"
_LEFT_IDLE = "idle_timeout_s idle_warning_s"
_QUOTA = "flavor nominal_milli borrowing_limit_milli lending_limit_milli enforce_at version"
_GRANT = "flavor granted_milli until_at take_back"
_REQUEST = "flavor nominal_milli from_at until_at version granted_milli decision note on_behalf_of"
_AGREED = "granted_until_at take_back preview previewed_at"
_APPROVAL_RULE = "level from_milli after_days"
_DELEGATION = "delegate from_at until_at"
_BUDGET = "period limit_h mode starts_on ends_on version"
_RESERVATION = "flavor amount_milli starts_at ends_at zone last_ends_at note"
_RECUT = "recut mode wanted before trouble"
_POOL = "request_class selector parameters nodes"
_DEFRAGMENTATION = "budget_s starts_at ends_at"
_CAPS = (
    "max_running max_pending user_max_running user_max_pending user_max_gpus_milli"
    " max_submits_a_minute user_max_submits_a_minute caps_from_above"
)
_USER = "username email is_active is_staff is_superuser"
_POLICY = (
    "max_run_time_s max_gpus_milli max_pods priority_classes images required_labels"
    " forbidden_fields default_run_time_s default_priority_class default_labels is_from_above"
    " version"
)
_GROUP_ROLE = "provider group role"
_CHANNEL = "name kind host events"
_REVIEW = "confirmed_at frozen_at"
_GATE = "name kind owner within_s"

_TABLE = {
    "admission.resume": "violations accepted",
    "admission.stop": "violations accepted",
    "approval-rule.remove": _APPROVAL_RULE,
    "approval-rule.set": _APPROVAL_RULE,
    "array.gate": _GATED,
    "array.release": "released_count",
    "array.reorder": _PRIORITY,
    "break-glass.make": "username",
    "break-glass.use": "username",
    "budget.remove": _BUDGET,
    "budget.set": _BUDGET,
    "budget.used-up": "used_up_at",
    "channel.make": _CHANNEL,
    "channel.remove": _CHANNEL,
    "channel.test": _CHANNEL,
    "cluster.ask-for-nodes": "asks_for_nodes",
    "cluster.credential": "host key_id version metrics_server expires_at",
    "cluster.exposure": "verdict node saw",
    "cluster.go-on-without": "state",
    "cluster.look-again": "state",
    "cluster.register": "name region server",
    "cluster.repair-drift": "repair_drift",
    "confinement.repair": "cluster drift",
    "delegation.make": _DELEGATION,
    "delegation.withdraw": _DELEGATION,
    "defragmentation.called-off": _DEFRAGMENTATION,
    "defragmentation.carried-out": "moved left_out lost_s free_nodes slices planned_by",
    "defragmentation.failed": "failed planned_by",
    "defragmentation.planned": _DEFRAGMENTATION,
    "flavor.create": "name kind model capacity profile isolation memory_mib placing",
    "flavor.place": "placing",
    "grant.begin": _GRANT,
    "grant.end": _GRANT,
    "group-role.add": _GROUP_ROLE,
    "group-role.remove": _GROUP_ROLE,
    "member.grant": "user role",
    "member.revoke": "user role",
    "node-pool.declare": _POOL,
    "node-pool.describe-node": "node_model node_gpus node_cpu_milli node_memory_mib",
    "node-pool.forget": _POOL,
    "policy.set": _POLICY,
    "project.caps": _CAPS,
    "project.create": "name slug namespace",
    "project.gate-add": _GATE,
    "project.gate-remove": _GATE,
    "project.idle-limit": _LEFT_IDLE,
    "project.leave": "name slug",
    "project.least-isolation": "least_isolation",
    "project.min-run-time": "min_run_time_s",
    "project.move": "tenant_id",
    "project.preferred-flavors": "preferred_flavors",
    "project.rename": "name",
    "project.weight": "weight",
    "queue.move": "state note model",
    "quota.grant": _QUOTA,
    "quota.grant-ended": _QUOTA,
    "quota.kept": "enforce_at",
    "quota.set": _QUOTA,
    "rate.set": "id flavor cluster price_per_hour currency from",
    "request.agreed": f"{_REQUEST} {_AGREED} level position",
    "request.amend": _REQUEST,
    "request.denied": _REQUEST,
    "request.granted": f"{_REQUEST} {_AGREED}",
    "request.lapsed": "version level position",
    "request.open": _REQUEST,
    "request.withdrawn": _REQUEST,
    "recut.called-off": _RECUT,
    "recut.checking": _RECUT,
    "recut.cordoning": _RECUT,
    "recut.cutting": _RECUT,
    "recut.done": _RECUT,
    "recut.emptying": _RECUT,
    "recut.failed": _RECUT,
    "recut.opening": _RECUT,
    "recut.planned": _RECUT,
    "recut.rolling-back": _RECUT,
    "reservation.cancel": _RESERVATION,
    "reservation.make": _RESERVATION,
    "review.confirm": _REVIEW,
    "review.freeze": _REVIEW,
    "review.thaw": _REVIEW,
    "second-factor.add": "kind name",
    "second-factor.codes": "",
    "second-factor.remove": "kind name",
    "second-factor.reset": "",
    "service-account.close": "username",
    "service-account.make": "username",
    "session.end": "user",
    "tenant-quota.kept": "enforce_at",
    "tenant-quota.set": _QUOTA,
    "tenant.create": "name slug parent",
    "tenant.idle-limit": _LEFT_IDLE,
    "tenant.leave": "name slug",
    "tenant.min-run-time": "min_run_time_s",
    "tenant.move": "parent_id",
    "tenant.rename": "name",
    "tenant.weight": "weight",
    "token.issue": "name scopes user",
    "token.revoke": "name scopes user",
    "user.change": _USER,
    "user.create": f"{_USER} provider",
    "user.leave": "provider",
    "user.return": "provider",
    "user.password": "",
    "workload.checkpoint": "checkpointed_at",
    "workload.gate": _GATED,
    "workload.release": "released_count",
    "workload.reorder": _PRIORITY,
    "workload.state": "state why",
    "workload.submit": "name state",
}

ACTIONS: Mapping[str, frozenset[str]] = {
    action: frozenset(fields.split()) for action, fields in _TABLE.items()
}
"""Action → the fields that `before` and `after` may have."""
