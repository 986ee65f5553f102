"""From which size on a request for quota takes more than one agreement: operators say it for
everywhere, a tenant's owners for what is below it. A rule only adds a step (ADR 0110)."""

from datetime import datetime

from django.db import transaction

from controlplane.audit.services import Entry
from controlplane.kernel.errors import Invalid, NotAllowed, NotFound
from tenants import access
from tenants.access import Action, Actor
from tenants.approval import Level
from tenants.models import MAX_AFTER_DAYS, ApprovalRule, QuotaRequest, Tenant
from tenants.services import quotas, trail


def set_rule(
    *,
    actor: Actor,
    tenant: Tenant | None,
    level: Level,
    from_milli: int,
    after_days: int | None = None,
    at: datetime,
) -> ApprovalRule:
    """From that size on, in thousandths of a device that a project would have in all, somebody of
    that level agrees too; and a step below that waits for `after_days` goes up to them, None
    never. `tenant` None is everywhere.

    Raises NotFound or NotAllowed, and Invalid for a size out of range or another level than its
    own for a tenant.
    """
    authorize(actor, tenant)
    if level is Level.PROJECT or (tenant is not None and level is not Level.TENANT):
        raise Invalid(
            "A tenant's rule is of level tenant; one for everywhere of level tenant or fleet.",
            pointer="/level",
            code="invalid-choice",
        )
    if not 0 <= from_milli <= quotas.MAX_MILLI:
        raise Invalid(
            f"{from_milli} is not between 0 and {quotas.MAX_MILLI}.",
            pointer="/from_milli",
            code="out-of-range",
        )
    if after_days is not None and not 1 <= after_days <= MAX_AFTER_DAYS:
        raise Invalid(
            f"{after_days} is not between 1 and {MAX_AFTER_DAYS}.",
            pointer="/after_days",
            code="out-of-range",
        )
    with transaction.atomic():
        kept = ApprovalRule.objects.select_for_update()
        before = kept.filter(tenant=tenant, level=level).first()
        rule, _ = ApprovalRule.objects.update_or_create(
            tenant=tenant,
            level=level,
            defaults={"from_milli": from_milli, "after_days": after_days},
        )
        _record(actor, "approval-rule.set", rule, at, before=before)
    return rule


def remove(*, actor: Actor, rule: ApprovalRule, at: datetime) -> None:
    """No such step any more, of open requests neither. Raises as `set_rule`, and NotFound where it
    is gone."""
    authorize(actor, rule.tenant)
    with transaction.atomic():
        deleted, _ = ApprovalRule.objects.filter(id=rule.id).delete()
        if not deleted:
            raise NotFound("There is no such rule.")
        _record(actor, "approval-rule.remove", rule, at)


def authorize(actor: Actor, tenant: Tenant | None) -> None:
    """Raises NotFound or NotAllowed to all but operators, or owners of the tenant, in person; also
    to whose own request waits for whom the rule has agree."""
    if actor.token is not None:
        raise NotAllowed("A token can't say who has to agree; sign in on the portal.")
    if tenant is None:
        access.authorize_fleet(actor, Action.OPERATE)
    else:
        access.authorize_tenant(actor, Action.MANAGE_MEMBERS, tenant=tenant)
    if _asks_below(actor, tenant):
        raise NotAllowed(
            "You ask for quota there yourself: have somebody else change who agrees, or wait for"
            " the answer."
        )


def _asks_below(actor: Actor, tenant: Tenant | None) -> bool:
    own = QuotaRequest.objects.filter(decision="", requested_by=actor.user)
    if tenant is not None:
        own = own.filter(project__tenant__in=actor.tenants_below(tenant.id))
    return own.exists()


def _record(
    actor: Actor,
    action: str,
    rule: ApprovalRule,
    at: datetime,
    *,
    before: ApprovalRule | None = None,
) -> None:
    removed = action == "approval-rule.remove"
    trail.record(
        Entry(
            action=action,
            target_type="approval-rule",
            target_id=rule.id,
            tenant_id=rule.tenant_id,
            before=_told(rule if removed else before),
            after=_told(None if removed else rule),
        ),
        actor=actor,
        at=at,
    )


def _told(rule: ApprovalRule | None) -> dict[str, object]:
    names = ("level", "from_milli", "after_days")
    return {name: getattr(rule, name) for name in names} if rule else {}
