"""The switch of a cluster: whether what somebody changed of confinements is put right there."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from clusters.models import Cluster
from clusters.services import clusters
from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import NotFound
from controlplane.kernel.forms import StrictForm
from controlplane.kernel.htmx import go, page
from tenants import access
from tenants.access import Action

REPAIR, TELL = "repair", "tell"
_SAID = {
    REPAIR: "Drift of confinements in {} is put right from now on.",
    TELL: "Drift of confinements in {} is only told from now on.",
}


class _DriftForm(StrictForm):
    drift = forms.ChoiceField(choices=[(REPAIR, "Put it right"), (TELL, "Only tell it")])


@page("POST")
def cluster_drift(request: HttpRequest, name: str) -> HttpResponse:
    """What can't be is told on the cluster's page. Raises NotAllowed but for operators of the
    fleet."""
    actor = actor_of(request)
    access.authorize_fleet(actor, Action.OPERATE)
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise NotFound("There is no such cluster.")
    form = _DriftForm(request.POST, request.FILES)
    if form.is_valid():
        wanted = form.cleaned_data["drift"]
        clusters.repair_drift(
            cluster=cluster,
            repair=wanted == REPAIR,
            actor=actor.label,
            actor_name=actor.name,
            at=clock.now(),
        )
        messages.success(request, _SAID[wanted].format(cluster.name))
    else:
        messages.warning(request, form.fault)
    return go(request, reverse("cluster-detail", args=[cluster.name]))
