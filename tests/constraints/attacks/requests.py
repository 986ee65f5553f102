"""Attacks on requests for quota, and on what was granted of them."""

from controlplane.kernel.ids import uuid7
from tenants.models import Grant, QuotaRequest, User
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import Sql, Statement, change, copy, update
from tests.constraints.rows import NOON, make


def _second_person() -> object:
    return make(User).pk


def _granted(**columns: object) -> Statement:
    """Somebody else's grant of a request, with one thing wrong."""
    decision = {
        "decision": "granted",
        "decided_by_id": _second_person,
        "decided_at": NOON,
        "granted_milli": 1,
    }
    return update(make(QuotaRequest), **decision | columns)


ATTACKS = (
    Attack("request_amount_in_range", "less than nothing", change(QuotaRequest, nominal_milli=-1)),
    Attack(
        "request_amount_in_range", "too much to add up", change(QuotaRequest, nominal_milli=10**13)
    ),
    Attack(
        "request_amount_in_range",
        "less than nothing is granted",
        lambda: _granted(granted_milli=-1),
    ),
    Attack(
        "request_amount_in_range",
        "too much to add up is granted",
        lambda: _granted(granted_milli=10**12 + 1),
    ),
    Attack(
        "request_decided_by_someone_else",
        "its requester grants it",
        lambda: _granted(decided_by_id=Sql("requested_by_id")),
    ),
    Attack("request_decision_whole", "nobody granted it", lambda: _granted(decided_by_id=None)),
    Attack("request_decision_whole", "it was granted never", lambda: _granted(decided_at=None)),
    Attack(
        "request_decision_whole",
        "it is undecided, by somebody",
        lambda: _granted(decision="", granted_milli=None),
    ),
    Attack(
        "request_decision_whole",
        "the answer is perhaps",
        lambda: _granted(decision="perhaps", granted_milli=None),
    ),
    Attack(
        "request_grant_has_amount", "a grant has no amount", lambda: _granted(granted_milli=None)
    ),
    Attack(
        "request_grant_has_amount",
        "a denial has an amount",
        lambda: _granted(decision="denied", note="no"),
    ),
    Attack(
        "request_denial_has_note",
        "a denial is not explained",
        lambda: _granted(decision="denied", granted_milli=None),
    ),
    Attack(
        "request_decided_by_someone_else",
        "somebody else withdraws it",
        lambda: _granted(decision="withdrawn", granted_milli=None),
    ),
    Attack(
        "request_ends_later",
        "it is asked for no time",
        change(QuotaRequest, from_at=NOON, until_at=NOON),
    ),
    Attack(
        "request_together_once_a_flavor",
        "one flavor is asked for twice at once",
        copy(QuotaRequest, {"together": uuid7}),
    ),
    negative("tenants_quotarequest_version_check", QuotaRequest, "version"),
    Attack("grant_ends_later", "it is for no time", change(Grant, until_at=Sql("from_at"))),
    Attack(
        "grant_began_with_an_amount",
        "it counts before it began",
        change(Grant, begun_at=None, extra_milli=1),
    ),
    Attack(
        "grant_began_with_an_amount",
        "it began, and nobody knows with how much",
        change(Grant, begun_at=NOON, extra_milli=None),
    ),
    Attack(
        "grant_began_with_an_amount",
        "less than nothing is taken away",
        change(Grant, begun_at=NOON, extra_milli=-1),
    ),
    Attack(
        "grant_began_with_an_amount",
        "more is taken away than adds up",
        change(Grant, begun_at=NOON, extra_milli=10**12 + 1),
    ),
    Attack(
        "grant_changes_a_quota_once_it_begins",
        "it changed a quota before it began",
        change(Grant, begun_at=None, extra_milli=None, quota_version=2),
    ),
    Attack(
        "tenants_grant_quota_version_check",
        "quota_version is negative",
        change(Grant, begun_at=NOON, extra_milli=0, quota_version=-1),
    ),
    Attack(
        "tenants_grant_request_id_key",
        "a request is granted twice",
        copy(Grant),
    ),
)
