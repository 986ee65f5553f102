"""The queues of a cluster: of the whole, and of each pool in it."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from clusters import selectors, stock
from clusters.models import Cluster
from clusters.services import queues
from controlplane.api.auth import operator_of
from controlplane.kernel import clock
from controlplane.kernel.htmx import go, page, refusal
from controlplane.kernel.queue_forms import MOVED, QueueForm
from scheduler.selectors.queues import under_way_in


class _PoolForm(QueueForm):
    """`model` "" is the whole cluster, which is said, too: a field that got lost is not that."""

    model = forms.CharField(required=False, max_length=stock.LONGEST, widget=forms.HiddenInput)

    def clean_model(self) -> str:
        if "model" not in self.data:
            raise forms.ValidationError("Say of which GPU model; empty is the whole cluster.")
        model: str = self.cleaned_data["model"]
        return model


@page("GET", "HEAD", "POST")
def cluster_queues(request: HttpRequest, name: str) -> HttpResponse:
    """A POST holds, drains or opens that of `model`. What is wrong, or was done meanwhile, is told
    on the page. Raises NotAllowed but for operators of the fleet."""
    actor = operator_of(request)
    cluster = selectors.cluster(name=name)
    if request.method != "POST":
        return _page(request, cluster)
    form = _PoolForm(request.POST, request.FILES)

    def move() -> None:
        moved = queues.move(
            cluster=cluster,
            model=form.cleaned_data["model"],
            state=form.moved_to,
            note=form.cleaned_data["note"],
            actor=actor.label,
            actor_name=actor.name,
            at=clock.now(),
        )
        messages.success(request, MOVED[form.moved_to].format(moved))

    status = refusal(form, move)
    if status is not None:
        return _page(request, cluster, form, status=status)
    return go(request, reverse("cluster-queues-page", args=[cluster.name]))


def _page(
    request: HttpRequest, cluster: Cluster, posted: QueueForm | None = None, *, status: int = 200
) -> HttpResponse:
    """`posted` stands where it was posted, at the cluster's if that is no model there."""
    found = selectors.queues(cluster=cluster)
    counts = under_way_in(cluster_id=cluster.id)
    model = request.POST.get("model", "")
    at = next((n for n, queue in enumerate(found) if queue.model == model), 0)
    context = {
        "cluster": cluster,
        "queues": [
            (
                queue,
                posted if posted and n == at else QueueForm(auto_id=f"id_{n}_%s"),
                counts[queue.model],
            )
            for n, queue in enumerate(found)
        ],
    }
    return render(request, "clusters/cluster_queues.html", context, status=status)
