"""One tenant's queue: that of all below it."""

from uuid import UUID

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.htmx import go, page, refusal
from controlplane.kernel.queue_forms import MOVED, QueueForm
from controlplane.kernel.queues import QueueState
from scheduler.selectors.queues import under_way
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Tenant
from tenants.selectors.queues import closed_tenants
from tenants.services import queues


@page("GET", "HEAD", "POST")
def tenant_queue(request: HttpRequest, id: UUID) -> HttpResponse:
    """A POST holds, drains or opens it. What is wrong, or was done meanwhile, is told on the
    page. Raises NotFound or NotAllowed but for those who may manage it."""
    actor = actor_of(request)
    tenant = access.tenant_or_404(actor, id)
    access.authorize_tenant(actor, Action.MANAGE_QUEUE, tenant=tenant)
    if request.method != "POST":
        return _page(request, actor, tenant, QueueForm())
    form = QueueForm(request.POST, request.FILES)
    status = refusal(
        form,
        lambda: queues.move(
            actor=actor,
            of=tenant,
            state=form.moved_to,
            note=form.cleaned_data["note"],
            at=clock.now(),
        ),
    )
    if status is None:
        messages.success(request, MOVED[form.moved_to].format(tenant.name))
        return go(request, reverse("tenant-queue-page", args=[tenant.id]))
    if status == 409:
        tenant = access.tenant_or_404(actor, id)
    return _page(request, actor, tenant, form, status=status)


def _page(
    request: HttpRequest, actor: Actor, tenant: Tenant, form: QueueForm, *, status: int = 200
) -> HttpResponse:
    below = actor.tenants_below(tenant.id)
    closed = closed_tenants().get(tenant.id, ())
    context = {
        "tenant": tenant,
        "queue_form": form,
        "may_manage": True,
        "under_way": under_way(Q(project__tenant__in=below)),
        "above": closed[tenant.queue_state != QueueState.OPEN :],
    }
    return render(request, "tenants/tenant_queue.html", context, status=status)
