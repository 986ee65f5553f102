"""Attacks on who has to agree to a request for quota, and on what they said."""

from functools import partial

from tenants.models import ApprovalRule, Delegation, QuotaRequest, RequestStep, Tenant, User
from tests.constraints.attack import Attack
from tests.constraints.moves import (
    Sql,
    Statement,
    change,
    copy,
    empty,
    insert_like,
    remove,
    update,
)
from tests.constraints.rows import HOUR, NOON, make

_RULE = {"level": "fleet"}


def _person() -> object:
    return make(User).pk


_AGREED = {
    "request": lambda: make(QuotaRequest),
    "decided_by": lambda: make(User),
    "position": 1,
    "outcome": "agreed",
    "granted_milli": 1000,
}
_NAMED = {"approver": lambda: make(User), "delegate": lambda: make(User)}


def _step(**columns: object) -> RequestStep:
    """Somebody else agrees, as the first."""
    return make(RequestStep, **_AGREED | columns)


def _next(before: RequestStep | None = None, /, **columns: object) -> Statement:
    """Another agrees after them, with one thing wrong."""
    said = {"position": 2, "decided_by_id": _person}
    return insert_like(before or _step(), **said | columns)


def _wrong(**columns: object) -> Statement:
    return update(_step(), **columns)


def _who_asked() -> Statement:
    step = _step()
    return _next(step, decided_by_id=step.request.requested_by_id)


def _withdrawn() -> Statement:
    step = _step()
    QuotaRequest.objects.filter(pk=step.request_id).update(
        decision="withdrawn", decided_by=step.request.requested_by_id, decided_at=NOON
    )
    return _next(step)


def _forgotten() -> Statement:
    step = _step()
    return 'DELETE FROM "tenants_requeststep" WHERE id = %s', [step.pk]


_STAYS = ("step_append_only",)


def _by_nobodys_word() -> Statement:
    return _next(on_behalf_of_id=_person)


def _for_who_asked() -> Statement:
    step = _step()
    return _next(step, on_behalf_of_id=step.request.requested_by_id)


def _for_who_spoke() -> Statement:
    step = _step()
    return _next(step, on_behalf_of_id=step.decided_by_id)


def _delegated(**columns: object) -> Statement:
    """A delegation is over, or not yet, when it is used."""
    delegation = make(
        Delegation,
        **_NAMED | {"until_at": NOON + HOUR, "from_at": NOON} | columns,
    )
    said = {"decided_by_id": delegation.delegate_id, "on_behalf_of_id": delegation.approver_id}
    return _next(**said, decided_at=NOON + HOUR / 2)


_WEEK = {
    "approver": lambda: make(User),
    "delegate": lambda: make(User),
    "from_at": NOON,
    "until_at": NOON + 168 * HOUR,
}
_ENDS = ("delegation_only_ends",)

ATTACKS = (
    Attack("step_never_emptied", "nobody agreed to anything", empty(RequestStep, _AGREED)),
    Attack("delegation_never_emptied", "nobody was named by anybody", empty(Delegation, _NAMED)),
    Attack("step_of_its_request", "somebody speaks for who gave them no word", _by_nobodys_word),
    Attack("step_of_its_request", "a delegate speaks for who asked", _for_who_asked),
    Attack("step_of_its_request", "one speaks, and then their delegate", _for_who_spoke),
    Attack(
        "step_of_its_request",
        "a delegate speaks before it",
        lambda: _delegated(from_at=NOON + HOUR * 3 / 4),
    ),
    Attack(
        "step_of_its_request",
        "a delegate speaks after it",
        lambda: _delegated(until_at=NOON + HOUR / 4),
    ),
    Attack(
        "step_of_its_request",
        "a delegate speaks once it is withdrawn",
        lambda: _delegated(withdrawn_at=NOON),
    ),
    Attack(
        "delegation_to_somebody_else",
        "one is one's own delegate",
        change(Delegation, _WEEK, delegate_id=Sql("approver_id")),
        behind=_ENDS,
    ),
    Attack(
        "delegation_is_bounded",
        "it is for no time",
        change(Delegation, _WEEK, until_at=NOON),
        behind=_ENDS,
    ),
    Attack(
        "delegation_is_bounded",
        "it is for ever",
        change(Delegation, _WEEK, until_at=NOON + 2161 * HOUR),
        behind=_ENDS,
    ),
    Attack(
        "delegation_only_ends",
        "it lasts longer than it was given for",
        change(Delegation, _WEEK, until_at=NOON + 169 * HOUR),
    ),
    Attack(
        "delegation_only_ends", "it is another's", change(Delegation, _WEEK, delegate_id=_person)
    ),
    Attack(
        "delegation_only_ends",
        "it holds again",
        change(Delegation, _WEEK | {"withdrawn_at": NOON}, withdrawn_at=None),
    ),
    Attack("delegation_is_kept", "nobody gave it", remove(Delegation, _WEEK)),
    Attack(
        "approval_rule_level_known",
        "a tenant asks for the fleet's",
        change(ApprovalRule, {"level": "tenant", "tenant": lambda: make(Tenant)}, level="fleet"),
    ),
    Attack(
        "approval_rule_level_known",
        "a rule asks for the step that there is",
        change(ApprovalRule, _RULE, level="project"),
    ),
    Attack(
        "approval_rule_size_in_range",
        "from less than nothing on",
        change(ApprovalRule, _RULE, from_milli=-1),
    ),
    Attack(
        "approval_rule_size_in_range",
        "from more than adds up on",
        change(ApprovalRule, _RULE, from_milli=10**12 + 1),
    ),
    *(
        Attack(
            "approval_rule_waits_in_range",
            f"it goes up after {days} days",
            change(ApprovalRule, _RULE, after_days=days),
        )
        for days in (0, 366)
    ),
    Attack(
        "tenants_approvalrule_after_days_check",
        "it goes up before it is asked",
        change(ApprovalRule, _RULE, after_days=-1),
        behind=("approval_rule_waits_in_range",),
    ),
    Attack(
        "step_outcome_whole",
        "somebody let it lapse",
        lambda: _wrong(outcome="lapsed", granted_milli=None),
        behind=_STAYS,
    ),
    Attack(
        "step_outcome_whole",
        "what lapsed agrees",
        lambda: _wrong(outcome="lapsed", decided_by_id=None),
        behind=_STAYS,
    ),
    Attack(
        "step_outcome_whole", "nobody agreed", lambda: _wrong(decided_by_id=None), behind=_STAYS
    ),
    Attack("approval_rule_once", "two rules hold everywhere", copy(ApprovalRule, _RULE)),
    Attack(
        "step_level_has_its_tenant",
        "a tenant's step is of no tenant",
        lambda: _wrong(level="tenant"),
        behind=_STAYS,
    ),
    Attack(
        "step_level_has_its_tenant",
        "the fleet's step is of a tenant",
        lambda: _wrong(level="fleet", tenant_id=make(Tenant).pk),
        behind=_STAYS,
    ),
    Attack(
        "step_outcome_whole",
        "to how much is not said",
        lambda: _wrong(granted_milli=None),
        behind=_STAYS,
    ),
    Attack(
        "step_outcome_whole",
        "less than nothing is agreed to",
        lambda: _wrong(granted_milli=-1),
        behind=_STAYS,
    ),
    Attack(
        "step_outcome_whole",
        "more than adds up is agreed to",
        lambda: _wrong(granted_milli=10**12 + 1),
        behind=_STAYS,
    ),
    Attack(
        "step_outcome_whole",
        "a denial has no reason",
        lambda: _wrong(outcome="denied", granted_milli=None),
        behind=_STAYS,
    ),
    Attack(
        "step_outcome_whole",
        "a denial has an amount",
        lambda: _wrong(outcome="denied", note="No."),
        behind=_STAYS,
    ),
    Attack("step_taken_once", "two take one step", lambda: _next(position=1)),
    Attack(
        "step_by_another_each",
        "one takes two steps",
        lambda: insert_like(_step(), position=2),
    ),
    Attack("step_of_its_request", "who asked takes a step", _who_asked),
    Attack("step_of_its_request", "a step is of an older version", lambda: _next(version=2)),
    Attack("step_of_its_request", "a step is of what was withdrawn", _withdrawn),
    Attack("step_of_its_request", "a later step gives more", lambda: _next(granted_milli=1001)),
    Attack(
        "step_of_its_request",
        "a later step gives it for good",
        lambda: _next(_step(until_at=NOON), until_at=None),
    ),
    Attack(
        "step_of_its_request",
        "a later step gives it for longer",
        lambda: _next(_step(until_at=NOON), until_at=NOON + HOUR),
    ),
    Attack("step_append_only", "somebody agreed to more", lambda: _wrong(granted_milli=1001)),
    Attack("step_append_only", "nobody agreed", _forgotten),
    *(
        Attack(
            f"tenants_requeststep_{column}_check",
            f"{column} is negative",
            partial(_wrong, **{column: -1}),
            behind=_STAYS,
        )
        for column in ("version", "position")
    ),
)
