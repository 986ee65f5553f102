"""Attacks on the tables of controlplane: audit and idempotency keys."""

from controlplane.api.models import IdempotencyKey
from controlplane.audit.models import AuditEvent
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import change, copy, empty, remove

ATTACKS = (
    Attack("audit_append_only", "an audit row names another actor", change(AuditEvent, actor="x")),
    Attack("audit_append_only", "an audit row is gone", remove(AuditEvent)),
    Attack("audit_never_emptied", "the audit is gone", empty(AuditEvent)),
    Attack(
        "idempotency_key_once",
        "one key has two answers",
        copy(IdempotencyKey, status=409),
    ),
    negative("api_idempotencykey_status_check", IdempotencyKey, "status"),
)
