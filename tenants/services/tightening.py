"""Numbers of a place that are no more than those of any tenant above it, None being no word at
all: who is further down only tightens (ADR 0103)."""

from django.db.models import Q

from controlplane.kernel.errors import Invalid
from tenants.access import Actor
from tenants.models import Project, Tenant


def check(
    *,
    actor: Actor,
    of: Project | Tenant,
    column: str,
    asked: int | None,
    above: int | None,
    by: str,
    zero_is_most: bool,
) -> None:
    """`above` is the least that any tenant above says, and `by` its name. Raises Invalid where the
    place would say more than that, or another below it says more than the place would."""
    if asked is None:
        return
    if above is not None and _rank(asked, zero_is_most) > _rank(above, zero_is_most):
        raise Invalid(
            f"{by} says {_told(above, zero_is_most)}, and who is below it may say no more.",
            pointer=f"/{column}",
            code="looser",
        )
    if isinstance(of, Project) or (zero_is_most and not asked):
        return
    more = Q((f"{column}__gt", asked)) | (Q((column, 0)) if zero_is_most else Q())
    below = actor.tenants_below(of.id)
    looser = (
        Tenant.objects.filter(more, id__in=below).exclude(id=of.id).order_by("name").first()
        or Project.objects.filter(more, tenant_id__in=below).order_by("name").first()
    )
    if looser is not None:
        says = _told(getattr(looser, column), zero_is_most)
        raise Invalid(
            f"{looser.name}, which is below it, says {says}: have it say less first.",
            pointer=f"/{column}",
            code="looser-below",
        )


def _rank(seconds: int, zero_is_most: bool) -> tuple[bool, int]:
    """Larger for what is more."""
    return (zero_is_most and not seconds, seconds)


def _told(seconds: int, zero_is_most: bool) -> str:
    return "never" if zero_is_most and not seconds else f"{seconds:,} s"
