"""Attacks on the tables of controlplane: audit, its chains and idempotency keys."""

from controlplane.api.models import IdempotencyKey
from controlplane.audit.models import AuditEvent, AuditLink
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import Statement, change, copy, empty, insert_like, remove, update
from tests.constraints.rows import make


def _a_row_whose_link_is_there() -> Statement:
    event = make(AuditEvent)
    return insert_like(event, id=make(AuditLink, events=[]).id)


def _a_place_that_is_taken() -> Statement:
    """The database gave the two of a chain the places 1 and 2."""
    make(AuditLink)
    return update(make(AuditLink), position=1)


ATTACKS = (
    Attack("audit_append_only", "an audit row names another actor", change(AuditEvent, actor="x")),
    Attack("audit_append_only", "an audit row is gone", remove(AuditEvent)),
    Attack("audit_never_emptied", "the audit is gone", empty(AuditEvent)),
    Attack(
        "audit_linked",
        "an audit row is in no link",
        _a_row_whose_link_is_there,
        error="audit_auditlink_pkey",
    ),
    Attack(
        "audit_link_placed",
        "a link names its own place",
        copy(AuditLink, position=7, digest=b"made up"),
    ),
    Attack(
        "audit_link_placed_whole",
        "a link has a place and no digest",
        change(AuditLink, digest=None),
        behind=("audit_link_append_only",),
    ),
    Attack(
        "audit_link_place_once",
        "two links have one place",
        _a_place_that_is_taken,
        behind=("audit_link_append_only",),
    ),
    Attack("audit_link_append_only", "a link is another", change(AuditLink, digest=b"made up")),
    Attack("audit_link_append_only", "a link is gone", remove(AuditLink)),
    Attack("audit_link_never_emptied", "the chains are gone", empty(AuditLink)),
    Attack(
        "idempotency_key_once",
        "one key has two answers",
        copy(IdempotencyKey, status=409),
    ),
    negative("api_idempotencykey_status_check", IdempotencyKey, "status"),
)
