"""Attacks on who may use how much: the tree, quotas and reservations."""

from functools import partial

from clusters.models import Flavor
from tenants.models import (
    CAPS,
    MAX_CAP,
    Project,
    Quota,
    Reservation,
    Tenant,
    User,
)
from tests.constraints.attack import Attack, negative
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
from tests.constraints.rows import NOON, make

USED = {"nominal_milli": 1000, "used_milli": 1}


def _cycle_of_three() -> Statement:
    top = make(Tenant)
    middle = make(Tenant, parent=top)
    return update(top, parent_id=make(Tenant, parent=middle).pk)


def _cycle_deeper_than_a_hundred() -> Statement:
    """Two trees of 60 levels, one hung below the other, and the top hung below the lowest."""
    upper, lower = _chain(60), _chain(60)
    Tenant.objects.filter(pk=lower[0].pk).update(parent=upper[-1])
    return update(upper[0], parent_id=lower[-1].pk)


def _chain(levels: int) -> list[Tenant]:
    chain = [make(Tenant)]
    while len(chain) < levels:
        chain.append(make(Tenant, parent=chain[-1]))
    return chain


def _other_use_on_insert(**amounts: int | None) -> Statement:
    """A second project's quota of the flavor, with the rest as in the first."""
    quota = make(Quota, nominal_milli=1000)
    return insert_like(quota, project_id=make(Project).pk, **amounts)


def _neighbour_lends(lent: int) -> Statement:
    """Two projects of 1,000 each; the second wants more than its own and what it is lent."""
    flavor = make(Flavor)
    make(Quota, flavor=flavor, nominal_milli=1000, lending_limit_milli=lent)
    second = make(Quota, flavor=flavor, nominal_milli=1000)
    return update(second, used_milli=1001 + lent)


def _borrows_after_a_cut_elsewhere() -> Statement:
    """Half of 1,000 is kept. Another's cut leaves nothing to borrow, of its own lent half too."""
    quota, _ = after_a_cut_elsewhere()
    return update(quota, used_milli=501)


def after_a_cut_elsewhere() -> tuple[Quota, Quota]:
    """A project that keeps half of 1,000 and uses none, and one that uses far more than is left
    of its quota."""
    flavor = make(Flavor)
    own = make(Quota, flavor=flavor, nominal_milli=1000, lending_limit_milli=500)
    cut = make(Quota, flavor=flavor, nominal_milli=9000, used_milli=9000)
    Quota.objects.filter(pk=cut.pk).update(nominal_milli=10)
    return own, cut


def _grows_after_a_cut() -> Statement:
    quota = make(Quota, nominal_milli=1000, borrowing_limit_milli=0, used_milli=1000)
    Quota.objects.filter(pk=quota.pk).update(nominal_milli=10)
    return update(quota, used_milli=1001)


def _closed(model: type[Project | Tenant], **columns: object) -> Statement:
    """A queue that is held, with one thing wrong."""
    held = {
        "queue_state": "held",
        "queue_note": "New racks.",
        "queue_changed_at": NOON,
        "queue_changed_by_id": lambda: make(User).pk,
    }
    return update(make(model), **held | columns)


TREE = (
    Attack(
        "tenant_not_its_own_parent",
        "a tenant is its own parent",
        change(Tenant, parent_id=Sql("id")),
        behind=("tenant_no_cycle",),
    ),
    Attack("tenant_no_cycle", "a tenant is its own great-grandchild", _cycle_of_three),
    Attack("tenant_no_cycle", "a very deep tree bites its tail", _cycle_deeper_than_a_hundred),
    Attack("tenants_tenant_slug_key", "two tenants have one slug", copy(Tenant)),
    Attack("tenant_weight_in_range", "a tenant weighs nothing", change(Tenant, weight=0)),
    Attack("tenant_weight_in_range", "a tenant outweighs all", change(Tenant, weight=1001)),
    negative("tenants_tenant_weight_check", Tenant, "weight", "tenant_weight_in_range"),
    Attack(
        "project_slug_once_a_tenant", "two projects have one slug", copy(Project, namespace="n-2")
    ),
    Attack(
        "tenants_project_namespace_key", "two projects have one namespace", copy(Project, slug="b")
    ),
    *(
        Attack("project_namespace_plain", f"a namespace {what}", change(Project, namespace=name))
        for what, name in (
            ("is empty", ""),
            ("begins with a dash", "-team"),
            ("is two", "a/b"),
            ("has a second line", Sql("E'team\\nkube-system'")),
        )
    ),
    Attack("project_weight_in_range", "a project weighs nothing", change(Project, weight=0)),
    Attack("project_weight_in_range", "a project outweighs all", change(Project, weight=1001)),
    negative("tenants_project_weight_check", Project, "weight", "project_weight_in_range"),
    *(
        Attack(f"{name}_min_run_time_in_range", f"a {name} grants {what}", change(model, **column))
        for name, model in (("tenant", Tenant), ("project", Project))
        for what, column in (
            ("less than nothing", {"min_run_time_s": -1}),
            ("its work more than a day", {"min_run_time_s": 86_401}),
        )
    ),
    *(
        Attack(f"{name}_idle_limit_in_range", f"a {name} says {what}", change(model, **columns))
        for name, model in (("tenant", Tenant), ("project", Project))
        for what, columns in (
            ("less than never", {"idle_timeout_s": -1, "idle_warning_s": 0}),
            ("more than 30 days", {"idle_timeout_s": 30 * 86_400 + 1, "idle_warning_s": 0}),
            ("a warning after the time-out", {"idle_timeout_s": 60, "idle_warning_s": 61}),
            ("a warning of less than nothing", {"idle_timeout_s": 60, "idle_warning_s": -1}),
            ("half of it", {"idle_timeout_s": 60}),
            ("the other half", {"idle_warning_s": 60}),
        )
    ),
    *(
        Attack(f"{name}_queue_{wall}", what.format(name), partial(_closed, model, **of))
        for name, model in (("project", Project), ("tenant", Tenant))
        for wall, what, of in (
            ("state_known", "the queue of a {} is ajar", {"queue_state": "ajar"}),
            ("closed_by_someone", "nobody closed that of a {}", {"queue_changed_by_id": None}),
            ("closed_by_someone", "that of a {} was closed never", {"queue_changed_at": None}),
            ("closed_by_someone", "that of a {} was closed for nothing", {"queue_note": ""}),
        )
    ),
    Attack(
        "project_frozen_since_confirmed",
        "a quota is frozen that somebody has just confirmed",
        change(Project, quota_confirmed_at=NOON, quota_frozen_at=NOON),
    ),
    *(
        Attack(f"project_{cap}", f"{what} is {value}", change(Project, **{cap: value}))
        for cap in CAPS
        for what, value in ((f"{cap}, by mistake,", 0), (f"{cap}, as a sum,", MAX_CAP + 1))
    ),
    Attack(
        "project_caps_from_above_known",
        "somebody above set what is no cap",
        change(Project, caps_from_above=["weight"]),
    ),
)

QUOTAS = (
    Attack("quota_once_a_project_and_flavor", "a project has two quotas of a flavor", copy(Quota)),
    Attack("quota_amounts_in_range", "nominal is negative", change(Quota, nominal_milli=-1)),
    Attack(
        "quota_amounts_in_range",
        "nominal is so large that sums may overflow",
        change(Quota, nominal_milli=10**12 + 1),
    ),
    Attack("quota_amounts_in_range", "use is negative", change(Quota, used_milli=-1)),
    Attack(
        "quota_amounts_in_range",
        "use is so large that sums may overflow",
        change(Quota, used_milli=10**12 + 1),
        behind=("quota_within_limits_on_update",),
    ),
    *(
        Attack(
            "quota_amounts_in_range",
            f"{column} is so large that sums may overflow",
            change(Quota, **{column: 10**12 + 1}),
        )
        for column in ("borrowing_limit_milli", "lending_limit_milli")
    ),
    Attack(
        "quota_in_use_stays",
        "another project's quota counts what is used",
        change(Quota, USED, project_id=lambda: make(Project).pk),
    ),
    Attack(
        "quota_in_use_stays",
        "another flavor's quota counts what is used",
        change(Quota, USED, flavor_id=lambda: make(Flavor).pk),
    ),
    Attack("quota_in_use_is_kept", "what is used has no quota", remove(Quota, USED)),
    Attack("quota_never_emptied", "nobody has a quota, whatever is used", empty(Quota)),
    Attack(
        "quota_amounts_in_range",
        "the borrowing limit is negative",
        change(Quota, borrowing_limit_milli=-1),
    ),
    Attack(
        "quota_amounts_in_range",
        "the lending limit is negative",
        change(Quota, lending_limit_milli=-1),
    ),
    Attack(
        "quota_enforced_has_a_limit",
        "what is beyond a quota without a limit is to be taken back",
        change(Quota, borrowing_limit_milli=None, enforce_at=NOON),
    ),
    negative("tenants_quota_version_check", Quota, "version"),
    Attack(
        "quota_within_limits_on_update",
        "use grows past nominal and borrowing",
        change(
            Quota,
            {"nominal_milli": 1000, "borrowing_limit_milli": 500, "used_milli": 1000},
            used_milli=1501,
        ),
        error="quota_within_limit",
    ),
    Attack(
        "quota_within_limits_on_update",
        "use that is over after a cut grows by a thousandth",
        _grows_after_a_cut,
        error="quota_within_limit",
    ),
    Attack(
        "quota_within_limits_on_update",
        "a project borrows what nobody has",
        lambda: _neighbour_lends(1000),
        error="quota_within_fleet",
    ),
    Attack(
        "quota_within_limits_on_update",
        "a project borrows what its neighbour does not lend",
        lambda: _neighbour_lends(0),
        error="quota_within_fleet",
    ),
    Attack(
        "quota_within_limits_on_update",
        "after a cut elsewhere a project takes of what it lends",
        _borrows_after_a_cut_elsewhere,
        error="quota_within_fleet",
    ),
    Attack(
        "quota_within_limits_on_insert",
        "a quota is born over its limit",
        lambda: _other_use_on_insert(used_milli=1002, borrowing_limit_milli=1),
        error="quota_within_limit",
    ),
    Attack(
        "quota_within_limits_on_insert",
        "a quota is born with more than the fleet has",
        lambda: _other_use_on_insert(used_milli=2001),
        error="quota_within_fleet",
    ),
)

FOR_PROJECT = {"project": lambda: make(Project)}

RESERVATIONS = (
    Attack(
        "reservation_of_one",
        "it is kept for nobody",
        change(Reservation, FOR_PROJECT, project_id=None),
    ),
    Attack(
        "reservation_of_one",
        "it is kept for a project and a tenant",
        change(Reservation, FOR_PROJECT, tenant_id=lambda: make(Tenant).pk),
    ),
    *(
        Attack("reservation_once_or_weekly", what, change(Reservation, FOR_PROJECT, **fields))
        for what, fields in (
            ("it is kept each week for ever", {"zone": "UTC"}),
            ("it is kept once and again", {"last_ends_at": Sql("ends_at")}),
            ("its last time is before its first", {"zone": "UTC", "last_ends_at": NOON}),
            (
                "its weeks overlap",
                {
                    "zone": "UTC",
                    "ends_at": Sql("starts_at + interval '6 days 1 second'"),
                    "last_ends_at": Sql("starts_at + interval '9 days'"),
                },
            ),
        )
    ),
    Attack(
        "reservation_amount_in_range",
        "nothing is kept",
        change(Reservation, FOR_PROJECT, amount_milli=0),
    ),
    Attack(
        "reservation_amount_in_range",
        "more is kept than adds up",
        change(Reservation, FOR_PROJECT, amount_milli=10**12 + 1),
    ),
    Attack(
        "reservation_ends_later",
        "a reservation ends as it begins",
        change(Reservation, FOR_PROJECT, ends_at=Sql("starts_at")),
    ),
)

ATTACKS = TREE + QUOTAS + RESERVATIONS
