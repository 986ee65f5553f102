"""Setting how much of a flavor a project, or a tenant, may hold. Live: the next cycle sees the new
amount."""

from copy import copy
from dataclasses import asdict, dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

from clusters.models import Flavor, FlavorKind
from controlplane.audit.services import Entry
from controlplane.kernel import hints
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Grant, Project, Quota, Tenant, TenantQuota
from tenants.services import notices, trail, usage

MAX_MILLI = usage.MAX_MILLI
ONE_MILLI = 1000
_IN_PIECES = frozenset({FlavorKind.WHOLE, FlavorKind.MIG})
_AMOUNTS = ("nominal_milli", "borrowing_limit_milli", "lending_limit_milli")


class VersionMismatch(Conflict):
    default_code = "version-mismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """In thousandths of the flavor; a limit of None is no limit. What is held beyond nominal +
    borrowing limit is taken back from `enforce_at` on; None lets it end by itself."""

    nominal_milli: int
    borrowing_limit_milli: int | None = None
    lending_limit_milli: int | None = None
    enforce_at: datetime | None = None


def authorize(actor: Actor, of: Project | Tenant) -> None:
    """Whether the actor may set its quotas, and what goes with them. Raises NotFound or NotAllowed
    for a project, NotAllowed for a tenant: what it has is guaranteed by the whole fleet."""
    if isinstance(of, Project):
        access.authorize(actor, Action.EDIT_QUOTA, project=of)
    else:
        access.authorize_fleet(actor, Action.EDIT_QUOTA)


def set_quota(
    *,
    actor: Actor,
    project: Project,
    flavor: Flavor,
    amounts: Amounts,
    at: datetime,
    version: int | None = None,
) -> Quota:
    """Make the project's quota of `flavor` be `amounts`, as an operator.

    A nominal quota is guaranteed by the whole fleet, so who operates less of it sets none above
    what is there for good: they ask. Another nominal quota ends what was granted for a time.
    Lowering it below what
    is used takes nothing back before `amounts.enforce_at`: it only admits nothing more. `version`
    is the one the caller saw, 0 for none yet; None overwrites whatever is there.
    Raises NotFound or NotAllowed for the project, Invalid for an amount out of range,
    VersionMismatch when somebody edited the quota meanwhile.
    """
    authorize(actor, project)
    _check_bounds(amounts)
    with transaction.atomic():
        quota, before = _set(Quota, amounts, version, project=project, flavor=flavor)
        _check_whole(amounts, flavor, there=before)
        _check_taken_back(quota)
        had_milli = before.nominal_milli if before else 0
        if quota.nominal_milli != had_milli:
            rows = Grant.objects.filter(
                Grant.for_a_time(), request__project=project, request__flavor=flavor
            )
            for_a_time = list(rows.select_related("request__project")) if before else []
            lasting_milli = Grant.lasting_milli(for_a_time, nominal_milli=had_milli, until_at=None)
            raises = quota.nominal_milli > lasting_milli
            if raises and not access.allowed_at(actor, Action.EDIT_QUOTA, place=None):
                raise NotAllowed(
                    "Only who operates the whole fleet raises a nominal quota beyond what is there"
                    " for good, as all of it guarantees that: ask for it by a request."
                )
            for grant in for_a_time:
                Grant.objects.filter(id=grant.id).update(ended_at=at, quota_version=quota.version)
                record_of_grant(grant, "grant.end", actor=actor, at=at)
        record(actor, quota, before, action="quota.set", at=at)
        hints.hint(hints.CYCLE)
    return quota


def set_tenant_quota(
    *,
    actor: Actor,
    tenant: Tenant,
    flavor: Flavor,
    amounts: Amounts,
    at: datetime,
    version: int | None = None,
) -> TenantQuota:
    """Make what the tenant has of `flavor` beside its members' own be `amounts`, as a fleet-wide
    operator: it is guaranteed by the whole fleet.

    As `set_quota`; the limits bound all of its members together. Raises NotAllowed, Invalid and
    VersionMismatch as that does.
    """
    authorize(actor, tenant)
    _check_bounds(amounts)
    with transaction.atomic():
        quota, before = _set(TenantQuota, amounts, version, tenant=tenant, flavor=flavor)
        _check_whole(amounts, flavor, there=before)
        trail.record(
            Entry(
                action="tenant-quota.set",
                target_type="tenant-quota",
                target_id=quota.id,
                tenant_id=tenant.id,
                before=_fields(before) if before else {},
                after=_fields(quota),
            ),
            actor=actor,
            at=at,
        )
        hints.hint(hints.CYCLE)
    return quota


def locked(*, project: Project, flavor: Flavor, version: int | None = None) -> Quota:
    """The project's quota of the flavor, the caller's until their transaction ends; where there is
    none, one of nothing that may not borrow. Raises VersionMismatch."""
    none = Amounts(nominal_milli=0, borrowing_limit_milli=0)
    quota, before = _locked(Quota, none, project=project, flavor=flavor)
    check_seen(before, version)
    return quota


def set_nominal(
    quota: Quota,
    nominal_milli: int,
    *,
    actor: Actor | None,
    action: str,
    at: datetime,
    enforce_at: datetime | None = None,
) -> None:
    """Of one that is `locked`, by whoever answers a request, or None by time: only nominal changes
    and, where it is given, from when on it is enforced."""
    before = copy(quota)
    amounts = Amounts(
        nominal_milli=nominal_milli,
        borrowing_limit_milli=quota.borrowing_limit_milli,
        lending_limit_milli=quota.lending_limit_milli,
        enforce_at=enforce_at or quota.enforce_at,
    )
    _check_bounds(amounts)
    _change(quota, amounts)
    record(actor, quota, before, action=action, at=at)
    hints.hint(hints.CYCLE)


def check(amounts: Amounts, flavor: Flavor, *, there: Quota | TenantQuota | None) -> None:
    """Raises Invalid for an amount out of range, for a moment to take back from without a
    borrowing limit, and for part of what is handed out whole, unless that is `there` already."""
    _check_bounds(amounts)
    _check_whole(amounts, flavor, there=there)


def _check_whole(amounts: Amounts, flavor: Flavor, *, there: Quota | TenantQuota | None) -> None:
    for name in _AMOUNTS:
        milli = getattr(amounts, name)
        if milli is not None and milli != getattr(there, name, None):
            check_pieces(milli, flavor, pointer=f"/{name}")


def check_pieces(milli: int, flavor: Flavor, *, pointer: str) -> None:
    """Raises Invalid for part of what is handed out whole."""
    if flavor.kind in _IN_PIECES and milli % ONE_MILLI:
        least = milli - milli % ONE_MILLI
        raise Invalid(
            f"{flavor.name} is handed out whole: {milli} thousandths are not; right would be"
            f" {least} or {least + ONE_MILLI}.",
            pointer=pointer,
            code="fraction",
        )


def _check_bounds(amounts: Amounts) -> None:
    for name in _AMOUNTS:
        value = getattr(amounts, name)
        if value is not None and not 0 <= value <= MAX_MILLI:
            raise Invalid(
                f"{value} is not between 0 and {MAX_MILLI}.",
                pointer=f"/{name}",
                code="out-of-range",
            )
    if amounts.enforce_at is not None and amounts.borrowing_limit_milli is None:
        raise Invalid(
            "Without a borrowing limit nothing is ever held beyond it: there is nothing to take"
            " back. Give a limit, 0 for none of what others lend.",
            pointer="/borrowing_limit_milli",
            code="required",
        )


def _check_taken_back(quota: Quota) -> None:
    """As `grants.give` asks it: raises Invalid where nothing can ever be beyond the quota, and a
    grant of it says that this is taken back at its end."""
    if (
        quota.borrowing_limit_milli is None
        and Grant.objects.filter(
            request__project=quota.project_id,
            request__flavor=quota.flavor_id,
            take_back=True,
            ended_at=None,
            until_at__isnull=False,
        ).exists()
    ):
        raise Invalid(
            "What a grant lets it hold is to be taken back at the grant's end, and without a"
            " borrowing limit nothing ever is: give a limit, or end the grant first.",
            pointer="/borrowing_limit_milli",
            code="required",
        )


def of(*, owner: Project | Tenant, flavor: Flavor) -> Quota | TenantQuota | None:
    """The project's or tenant's own quota of the flavor, as it is now."""
    if isinstance(owner, Project):
        return Quota.objects.filter(project=owner, flavor=flavor).first()
    return TenantQuota.objects.filter(tenant=owner, flavor=flavor).first()


def check_version(*, owner: Project | Tenant, flavor: Flavor, version: int | None) -> None:
    """Raises VersionMismatch when `set_quota` would."""
    check_seen(of(owner=owner, flavor=flavor), version)


def check_seen(quota: Quota | TenantQuota | None, version: int | None) -> None:
    """As `check_version`, of the one that is there."""
    there = quota.version if quota else 0
    if version is not None and version != there:
        raise VersionMismatch(f"The quota is at version {there} by now, not {version}.")


def _set[Q: (Quota, TenantQuota)](
    model: type[Q], amounts: Amounts, version: int | None, **of: Project | Tenant | Flavor
) -> tuple[Q, Q | None]:
    """The row with these amounts, and as it was. Raises VersionMismatch."""
    quota, before = _locked(model, amounts, **of)
    check_seen(before, version)
    if before:
        _change(quota, amounts)
    return quota, before


def _locked[Q: (Quota, TenantQuota)](
    model: type[Q], amounts: Amounts, **of: Project | Tenant | Flavor
) -> tuple[Q, Q | None]:
    """The row, ours until the transaction ends: made with `amounts`, or (again) as it was."""
    quota, made = model.objects.select_for_update().get_or_create(**of, defaults=asdict(amounts))
    if made and isinstance(quota, Quota) and quota.flavor.kind == FlavorKind.MODEL:
        usage.count(quota)
    return quota, None if made else copy(quota)


def _change(quota: Quota | TenantQuota, amounts: Amounts) -> None:
    """Never touches used_milli."""
    type(quota).objects.filter(id=quota.id).update(
        version=F("version") + 1,
        nominal_milli=amounts.nominal_milli,
        borrowing_limit_milli=amounts.borrowing_limit_milli,
        lending_limit_milli=amounts.lending_limit_milli,
        enforce_at=amounts.enforce_at,
    )
    quota.refresh_from_db()


def record(
    actor: Actor | None, quota: Quota, before: Quota | None, *, action: str, at: datetime
) -> None:
    """The audit row of a change by somebody, or by time, in the caller's transaction."""
    trail.record(
        Entry(
            action=action,
            target_type="quota",
            target_id=quota.id,
            tenant_id=quota.project.tenant_id,
            project_id=quota.project_id,
            before=_fields(before) if before else {},
            after=_fields(quota),
        ),
        actor=actor,
        at=at,
    )


def record_of_grant(grant: Grant, action: str, *, actor: Actor | None, at: datetime) -> None:
    """The audit row of its beginning or end, in the caller's transaction."""
    request = grant.request
    trail.record(
        Entry(
            action=action,
            target_type="quota-request",
            target_id=request.id,
            tenant_id=request.project.tenant_id,
            project_id=request.project_id,
            after={
                "flavor": str(request.flavor_id),
                "granted_milli": request.granted_milli,
                "until_at": grant.until_at.isoformat() if grant.until_at else None,
                "take_back": grant.take_back,
            },
        ),
        actor=actor,
        at=at,
    )
    if action == "grant.end":
        notices.grant_ended(grant, at=at)


def _fields(quota: Quota | TenantQuota) -> dict[str, object]:
    return {
        "flavor": str(quota.flavor_id),
        "nominal_milli": quota.nominal_milli,
        "borrowing_limit_milli": quota.borrowing_limit_milli,
        "lending_limit_milli": quota.lending_limit_milli,
        "enforce_at": quota.enforce_at.isoformat() if quota.enforce_at else None,
        "version": quota.version,
    }
