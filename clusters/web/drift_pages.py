"""The switch of a cluster: whether what somebody changed of confinements is put right there."""

from django import forms
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from clusters import selectors
from clusters.services import clusters
from controlplane.api.auth import operator_of
from controlplane.kernel import clock
from controlplane.kernel.forms import StrictForm
from controlplane.kernel.htmx import go, page

REPAIR, TELL = "repair", "tell"
_SAID = {
    REPAIR: "Drift of confinements in {} is put right from now on.",
    TELL: "Drift of confinements in {} is only told from now on.",
}


class _DriftForm(StrictForm):
    drift = forms.ChoiceField(choices=[(REPAIR, "Put it right"), (TELL, "Only tell it")])


@page("POST")
def cluster_drift(request: HttpRequest, name: str) -> HttpResponse:
    """Raises NotAllowed but for operators of the fleet, and BadRequest."""
    actor = operator_of(request)
    cluster = selectors.cluster(name=name)
    form = _DriftForm(request.POST, request.FILES)
    if not form.is_valid():
        raise BadRequest(form.fault)
    wanted = form.cleaned_data["drift"]
    clusters.repair_drift(
        cluster=cluster,
        repair=wanted == REPAIR,
        actor=actor.label,
        actor_name=actor.name,
        at=clock.now(),
    )
    messages.success(request, _SAID[wanted].format(cluster.name))
    return go(request, reverse("cluster-detail", args=[cluster.name]))
