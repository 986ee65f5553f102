"""Quota: the tree with what is used of it, and the form that asks for more."""

from collections.abc import Iterable, Sequence
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

MOST = 25
"""Projects on one page: a browser draws their bars anew whenever one changes."""
MAX_FIND = 60


@dataclass(frozen=True, slots=True)
class TenantBranches:
    """The projects of one tenant; `path` is where it hangs in the tree, and `shared` what the
    tenants there have for all below them."""

    path: tuple[str, ...]
    shared: tuple[SharedLine, ...]
    branches: tuple[tuple[Branch, tuple[tuple[QuotaLine, Bullet], ...]], ...]


@page("GET", "HEAD")
def quota_list(request: HttpRequest) -> HttpResponse:
    """Projects that the actor sees, with a bar for each flavor that they have quota of: those that
    were looked for by words of their own or their tenants' names, and of more than MOST the
    fullest."""
    actor = actor_of(request)
    branches = tree.branches(actor=actor)
    find = request.GET.get("find", "")[:MAX_FIND]
    found = _found(branches, find)
    shown = _fullest(found)
    rev = revision(shown, len(found))
    same = unchanged(request, rev)
    if same is not None:
        return same
    context = {
        "trees": _by_tenant(shown),
        "find": find,
        "may_find": len(branches) > MOST,
        "beyond_count": len(found) - len(shown),
        "may_request": any(branch.may_request for branch in branches),
        "may_edit_tenants": actor.permits_everywhere(Action.EDIT_QUOTA),
        "over_models": any(q.flavor.endswith(SEVENTHS) for b in branches for q in b.quotas),
        "rev": rev,
    }
    return partial(request, "tenants/quota_list.html", "tree", context)


def _found(branches: Sequence[Branch], find: str) -> Sequence[Branch]:
    words = find.casefold().split()
    return [
        branch
        for branch in branches
        if all(word in " ".join((*branch.path, branch.name)).casefold() for word in words)
    ]


def _fullest(branches: Sequence[Branch]) -> Sequence[Branch]:
    """In the same order."""
    fullest = {branch.id for branch in sorted(branches, key=_fullness, reverse=True)[:MOST]}
    return [branch for branch in branches if branch.id in fullest]


def _fullness(branch: Branch) -> float:
    """How much of what it may use at most is used, of the quota of which most is; of the
    nominal quota where it may borrow without a limit."""
    return max(
        (
            quota.used_milli / max(1, quota.nominal_milli + (quota.borrowing_limit_milli or 0))
            for quota in branch.quotas
        ),
        default=-1.0,
    )


def _by_tenant(branches: Iterable[Branch]) -> list[TenantBranches]:
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
