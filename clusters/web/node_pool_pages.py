"""The node pools of a cluster that make nodes by themselves: what a node of each has."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from clusters import selectors
from clusters.models import Cluster, NodePool
from clusters.services import autoscaling, clusters, declared_pools
from clusters.web.node_pool_forms import AskForm, DeclareForm, ForgetForm, NodeForm
from controlplane.api.auth import operator_of
from controlplane.kernel import clock
from controlplane.kernel.forms import StrictForm
from controlplane.kernel.htmx import go, page, refusal
from scheduler.selectors import node_asks


@page("GET", "HEAD", "POST")
def cluster_node_pools(request: HttpRequest, name: str) -> HttpResponse:
    """A POST says what a node of a pool has, whether the cluster is asked for nodes, or which pool
    there is, or no more. Raises NotAllowed but for operators of the fleet."""
    operator_of(request)
    cluster = selectors.cluster(name=name)
    if request.method != "POST":
        return _page(request, cluster)
    for name, act in (("ask", _asking), ("declare", _declaring), ("forget", _forgetting)):
        if name in request.POST:
            return act(request, cluster)
    return _describing(request, cluster)


def _describing(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    form, actor = NodeForm(request.POST, request.FILES), operator_of(request)

    def describe() -> None:
        made = autoscaling.describe_node(
            id=selectors.node_pool(cluster=cluster, id=form.cleaned_data["pool"]).id,
            node=form.node(),
            actor=actor.label,
            actor_name=actor.name,
            at=clock.now(),
        )
        messages.success(request, f"A node of {made.name} has {made.node_gpus} GPUs.")

    return _saved(request, cluster, form, describe)


def _asking(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    form, actor = AskForm(request.POST, request.FILES), operator_of(request)

    def switch() -> None:
        ask = form.cleaned_data["ask"] == "yes"
        clusters.ask_for_nodes(
            cluster=cluster, ask=ask, actor=actor.label, actor_name=actor.name, at=clock.now()
        )
        said = "is asked" if ask else "is no longer asked"
        messages.success(request, f"{cluster.name} {said} for nodes that work waits for.")

    return _saved(request, cluster, form, switch)


def _declaring(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    form, actor = DeclareForm(request.POST, request.FILES), operator_of(request)

    def declare() -> None:
        made = declared_pools.declare(
            cluster=cluster,
            pool=form.pool(),
            node=form.node(),
            actor=actor.label,
            actor_name=actor.name,
            at=clock.now(),
        )
        messages.success(request, f"{made.name} is declared.")

    return _saved(request, cluster, form, declare, about="name")


def _forgetting(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    form, actor = ForgetForm(request.POST, request.FILES), operator_of(request)

    def forget() -> None:
        pool = selectors.node_pool(cluster=cluster, id=form.cleaned_data["forget"])
        declared_pools.forget(id=pool.id, actor=actor.label, actor_name=actor.name, at=clock.now())
        messages.success(request, f"Nothing more is expected of {pool.name}.")

    return _saved(request, cluster, form, forget)


def _saved(
    request: HttpRequest,
    cluster: Cluster,
    form: StrictForm,
    save: Callable[[], object],
    *,
    about: str | None = None,
) -> HttpResponse:
    """The page anew once it is saved, or the page that says what is wrong."""
    status = refusal(form, save, about=about)
    if status is not None:
        return _page(request, cluster, form, status=status)
    return go(request, reverse("cluster-node-pools-page", args=[cluster.name]))


def _page(
    request: HttpRequest, cluster: Cluster, posted: StrictForm | None = None, *, status: int = 200
) -> HttpResponse:
    """`posted` stands where it was posted, above all pools if that is at none of them."""
    found = selectors.coming_nodes(cluster_id=cluster.id)
    chosen = request.POST.get("pool", "")
    at = {str(one.pool.pk) for one in found if one.node is None or not one.node.learnt}
    declaring = posted if isinstance(posted, DeclareForm) else DeclareForm(auto_id="id_new_%s")
    asks = node_asks.of_cluster(cluster_id=cluster.id, at=clock.now())
    context = {
        "cluster": cluster,
        "lost": None if chosen in at or posted is declaring else posted,
        "declaring": declaring,
        "pools": [
            (
                one,
                posted if posted and str(one.pool.pk) == chosen else _form(n, one.pool),
                asks.get(one.pool.pk, ()),
            )
            for n, one in enumerate(found)
        ],
    }
    return render(request, "clusters/cluster_node_pools.html", context, status=status)


def _form(nth: int, pool: NodePool) -> NodeForm:
    said = {
        "pool": pool.pk,
        "model": pool.node_model or pool.model,
        "gpus": pool.node_gpus,
        "cpu_milli": pool.node_cpu_milli,
        "memory_mib": pool.node_memory_mib,
    }
    return NodeForm(initial=said, auto_id=f"id_{nth}_%s")
