"""Setting a tenant's weight. A project's is on its own page."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.htmx import go, page, refusal
from tenants import access
from tenants.access import Action
from tenants.models import Tenant
from tenants.services import weights
from tenants.web.queue_forms import WeightForm


@page("GET", "HEAD", "POST")
def tenant_weight(request: HttpRequest, id: UUID) -> HttpResponse:
    """422 with the form for no such weight."""
    actor = actor_of(request)
    tenant = access.tenant_or_404(actor, id)
    access.authorize_fleet(actor, Action.EDIT_QUOTA)
    if request.method != "POST":
        return _page(request, tenant, WeightForm(initial={"weight": tenant.weight}))
    form = WeightForm(request.POST, request.FILES)
    status = refusal(
        form,
        lambda: weights.set_for_tenant(
            actor=actor, tenant=tenant, weight=form.cleaned_data["weight"], at=clock.now()
        ),
    )
    if status is not None:
        return _page(request, tenant, form, status=status)
    messages.success(request, f"The weight of {tenant.name} holds from the next cycle on.")
    return go(request, reverse("quota-list"))


def _page(
    request: HttpRequest, tenant: Tenant, form: WeightForm, *, status: int = 200
) -> HttpResponse:
    context = {"tenant": tenant, "form": form}
    return render(request, "tenants/tenant_weight.html", context, status=status)
