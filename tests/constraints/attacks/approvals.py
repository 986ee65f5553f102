"""Attacks on who has to agree to a request for quota, and on what they said."""

from functools import partial

from tenants.models import ApprovalRule, QuotaRequest, RequestStep, Tenant, User
from tests.constraints.attack import Attack
from tests.constraints.moves import Statement, change, copy, insert_like, update
from tests.constraints.rows import HOUR, NOON, make

_RULE = {"level": "fleet"}


def _person() -> object:
    return make(User).pk


def _step(**columns: object) -> RequestStep:
    """Somebody else agrees, as the first."""
    said = {
        "request": make(QuotaRequest),
        "decided_by": make(User),
        "position": 1,
        "outcome": "agreed",
        "granted_milli": 1000,
    }
    return make(RequestStep, **said | columns)


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

ATTACKS = (
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
