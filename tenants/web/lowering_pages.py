"""Setting one quota of a project or tenant, having seen who would be preempted for it."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from clusters.models import Flavor
from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, Invalid, NotFound
from controlplane.kernel.htmx import focus_fault, go, later, page, partial
from controlplane.kernel.throttle import TooOften
from scheduler.selectors import guarantees
from scheduler.services import lowering, replays
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, Tenant
from tenants.services import quotas
from tenants.web import replayed
from tenants.web.lowering_api import shown
from tenants.web.lowering_forms import LoweringForm


@page("GET", "HEAD", "POST")
def project_quota(request: HttpRequest, id: UUID, flavor: str) -> HttpResponse:
    """A POST tells who would be preempted, with `play` who would have waited longer in the last
    days, and sets the quota only if the first was told of the same amounts before. 422 with the
    form when it can't be so, 409 when somebody else set it meanwhile."""
    actor = actor_of(request)
    project = access.project_or_404(actor, id)
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    return _quota(request, actor, project, _flavor(flavor))


@page("GET", "HEAD", "POST")
def tenant_quota(request: HttpRequest, id: UUID, flavor: str) -> HttpResponse:
    """As `project_quota`, of what a tenant has beside its projects' own."""
    actor = actor_of(request)
    tenant = access.tenant_or_404(actor, id)
    access.authorize_fleet(actor, Action.EDIT_QUOTA)
    return _quota(request, actor, tenant, _flavor(flavor))


def _flavor(name: str) -> Flavor:
    found = Flavor.objects.filter(name=name).first()
    if found is None:
        raise NotFound("There is no such flavor.")
    return found


def _quota(
    request: HttpRequest, actor: Actor, owner: Project | Tenant, flavor: Flavor
) -> HttpResponse:
    context: dict[str, object] = {"owner": owner, "flavor": flavor}
    if isinstance(owner, Tenant):
        context["weight_url"] = reverse("tenant-weight-set", args=[owner.id])
    at = clock.now()
    if request.method != "POST":
        there = quotas.of(owner=owner, flavor=flavor)
        return _page(request, LoweringForm.of(there, at=at), context)
    form = LoweringForm(request.POST, request.FILES)
    if isinstance(owner, Project):
        form.beside |= {"play"}
    status = 422
    if form.is_valid():
        try:
            amounts, version = form.amounts(at=at), form.cleaned_data["version"]
            if "play" in request.POST or request.POST.get("seen") != form.asked():
                found = _found(request, actor, owner, flavor, amounts, version)
                return _page(request, form, context | found)
            _set(actor, owner, flavor, amounts, version)
        except TooOften as error:
            answer = _page(request, form, context | {"refusal": error.message}, status=429)
            return later(answer, error)
        except Invalid as error:
            form.show(error.problems)
        except Conflict as error:
            form.add_error(None, error.message)
            status = 409
        else:
            messages.success(request, f"The quota of {owner.name} is set.")
            for warning in guarantees.warnings(flavor=flavor, owner=owner):
                messages.warning(request, warning)
            return go(request, reverse("quota-list"))
    focus_fault(form)
    return _page(request, form, context, status=status)


def _found(
    request: HttpRequest,
    actor: Actor,
    owner: Project | Tenant,
    flavor: Flavor,
    amounts: quotas.Amounts,
    version: int,
) -> dict[str, object]:
    """What it would do: to whom in the last days, or to what runs now."""
    at = clock.now()
    if isinstance(owner, Project) and "play" in request.POST:
        played = replays.of_quota(
            actor=actor, project=owner, flavor=flavor, amounts=amounts, at=at
        )
        return replayed.shown(played)
    found = lowering.preview(
        actor=actor, owner=owner, flavor=flavor, amounts=amounts, at=at, version=version
    )
    return {"found": shown(found, enforce_at=amounts.enforce_at)}


def _set(
    actor: Actor,
    owner: Project | Tenant,
    flavor: Flavor,
    amounts: quotas.Amounts,
    version: int,
) -> None:
    at = clock.now()
    if isinstance(owner, Project):
        quotas.set_quota(
            actor=actor, project=owner, flavor=flavor, amounts=amounts, at=at, version=version
        )
    else:
        quotas.set_tenant_quota(
            actor=actor, tenant=owner, flavor=flavor, amounts=amounts, at=at, version=version
        )


def _page(
    request: HttpRequest, form: LoweringForm, context: dict[str, object], *, status: int = 200
) -> HttpResponse:
    return partial(
        request, "tenants/quota_set.html", "form", context | {"form": form}, status=status
    )
