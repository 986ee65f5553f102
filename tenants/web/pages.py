"""Quota: the tree with what is used of it, and the form that asks for more."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from clusters.models import SEVENTHS
from controlplane.api.auth import actor_of
from controlplane.kernel.charts import Bullet, bullet
from controlplane.kernel.htmx import page, partial, revision, unchanged
from scheduler.core.reasons import in_units
from tenants.access import Action
from tenants.selectors import tree
from tenants.selectors.tree import Branch, QuotaLine, SharedLine


@dataclass(frozen=True, slots=True)
class TenantBranches:
    """The projects of one tenant; `path` is where it hangs in the tree, and `shared` what the
    tenants there have for all below them."""

    path: tuple[str, ...]
    shared: tuple[SharedLine, ...]
    branches: tuple[tuple[Branch, tuple[tuple[QuotaLine, Bullet], ...]], ...]


@page("GET", "HEAD")
def quota_list(request: HttpRequest) -> HttpResponse:
    """Every project the actor sees, with a bar for each flavor that it has quota of."""
    actor = actor_of(request)
    branches = tree.branches(actor=actor)
    rev = revision(branches)
    same = unchanged(request, rev)
    if same is not None:
        return same
    context = {
        "trees": _by_tenant(branches),
        "may_request": any(branch.may_request for branch in branches),
        "may_edit_tenants": actor.permits_everywhere(Action.EDIT_QUOTA),
        "over_models": any(q.flavor.endswith(SEVENTHS) for b in branches for q in b.quotas),
        "rev": rev,
    }
    return partial(request, "tenants/quota_list.html", "tree", context)


def _by_tenant(branches: tuple[Branch, ...]) -> list[TenantBranches]:
    groups: dict[tuple[str, ...], list[Branch]] = {}
    for branch in branches:
        groups.setdefault(branch.path, []).append(branch)
    return [
        TenantBranches(path, group[0].shared, tuple((b, _bullets(b)) for b in group))
        for path, group in groups.items()
    ]


def _bullets(branch: Branch) -> tuple[tuple[QuotaLine, Bullet], ...]:
    return tuple(
        (
            quota,
            bullet(
                id=f"b-{branch.id}-{quota.flavor_id}",
                title=quota.flavor,
                used=quota.used_milli,
                nominal=quota.nominal_milli,
                borrowing_limit=quota.borrowing_limit_milli,
                unit=in_units,
            ),
        )
        for quota in branch.quotas
    )
