"""Recuts of a cluster's nodes: what is proposed, what one would stop, planning it, its course."""

from datetime import datetime
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from clusters import selectors as clusters
from clusters.models import Cluster
from controlplane.api.auth import operator_of
from controlplane.kernel import clock
from controlplane.kernel import device_map as maps
from controlplane.kernel.errors import AppError
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import focus_fault, go, later, page
from controlplane.kernel.throttle import TooOften
from scheduler.core.node import mig
from scheduler.core.node.ways import Way, ways_of
from scheduler.models import RecutMode
from scheduler.models.recut import LONGEST
from scheduler.selectors import hardware
from scheduler.selectors import recuts as reading
from scheduler.selectors.recuts import Preview
from scheduler.services import asking, recuts
from scheduler.web.recut_forms import NodeForm, RecutForm, lines
from tenants.access import Actor

HELD = "In use"


@page("GET", "HEAD", "POST")
def recut_list(request: HttpRequest, name: str) -> HttpResponse:
    """`?node=&devices=` shows what cutting that node so would stop; else what is proposed is
    shown. A POST plans; 422 with the form when it can't be so, 429 when it was asked for too
    often. Raises NotAllowed but for operators of the fleet."""
    actor = operator_of(request)
    cluster = clusters.cluster(name=name)
    if request.method != "POST":
        return _page(request, actor, cluster, None)
    form = RecutForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            recuts.plan(
                asked=recuts.Asked(
                    node=reading.node(cluster=cluster, name=form.cleaned_data["node"]),
                    cuts=form.cuts,
                    mode=RecutMode(form.cleaned_data["mode"]),
                    starts_at=form.cleaned_data["starts_at"],
                    ends_at=form.cleaned_data["ends_at"],
                    actor=actor.label,
                    actor_name=actor.name,
                ),
                at=clock.now(),
            )
        except AppError as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, f"A recut of {form.cleaned_data['node']} is planned.")
            return go(request, reverse("cluster-recuts-page", args=[cluster.name]))
    focus_fault(form)
    return _page(request, actor, cluster, form, status=422)


@page("POST")
def recut_call_off(request: HttpRequest, name: str, id: UUID) -> HttpResponse:
    actor = operator_of(request)
    cluster = clusters.cluster(name=name)
    no_fields(request)
    row = reading.one(cluster=cluster, id=id)
    try:
        recuts.call_off(recut=row, actor=actor.label, actor_name=actor.name, at=clock.now())
    except AppError as error:
        messages.warning(request, error.message)
    else:
        messages.success(request, f"The recut of {row.node.name} is called off.")
    return go(request, reverse("cluster-recuts-page", args=[cluster.name]))


def _page(
    request: HttpRequest,
    actor: Actor,
    cluster: Cluster,
    form: RecutForm | None,
    *,
    status: int = 200,
) -> HttpResponse:
    at = clock.now()
    context: dict[str, object] = {
        "cluster": cluster,
        "recuts": [
            (told, lines(ways_of(told.row.wanted)), lines(ways_of(told.row.before)))
            for told in reading.of_cluster(cluster=cluster)
        ],
    }
    asked = NodeForm(request.GET, auto_id="shown_%s") if "node" in request.GET else None
    try:
        with asking.turn(actor=actor, at=at):
            if asked is not None:
                context["preview"] = made = _previewed(asked, cluster, actor)
                first = {"node": request.GET["node"], "devices": request.GET.get("devices", "")}
                until = _until(at, made[0] if made is not None else None)
                if made is None:
                    status = 422
            else:
                shown = [
                    (each, *_drawn(actor, cluster, each.preview))
                    for each in reading.proposed(cluster=cluster, at=at)
                ]
                context["proposals"] = shown
                first = {"node": shown[0][0].preview.node, "devices": shown[0][1]} if shown else {}
                until = _until(at, shown[0][0].preview if shown else None)
    except TooOften as error:
        context |= {"refusal": error.message, "form": form or RecutForm()}
        context["asked"] = asked or NodeForm(auto_id="shown_%s")
        return later(render(request, "scheduler/recuts.html", context, status=429), error)
    if form is None:
        form = RecutForm(initial={**first, "starts_at": at, "ends_at": until})
    context |= {"form": form, "asked": asked or NodeForm(initial=first, auto_id="shown_%s")}
    return render(request, "scheduler/recuts.html", context, status=status)


def _until(at: datetime, made: Preview | None) -> datetime:
    """The end of a window in which the node becomes empty, as far as that is known and may be."""
    ends_at = at + recuts.WINDOW
    if made is None or made.empty_at is None:
        return ends_at
    return min(max(ends_at, made.empty_at + reading.AFTERWARDS), at + LONGEST)


def _previewed(
    asked: NodeForm, cluster: Cluster, actor: Actor
) -> tuple[Preview, str, maps.DeviceMap] | None:
    """None where it can't be cut so, which the form says."""
    if not asked.is_valid():
        return None
    node = reading.node(cluster=cluster, name=asked.cleaned_data["node"])
    try:
        recuts.check(node=node, cuts=asked.cuts)
    except AppError as error:
        asked.add_error(None, error.message)
        return None
    made = reading.preview(
        node=node,
        now=ways_of(recuts.cut_now(node=node)),
        ways=ways_of(asked.cuts),
        at=clock.now(),
    )
    return made, *_drawn(actor, cluster, made)


def _drawn(actor: Actor, cluster: Cluster, made: Preview) -> tuple[str, maps.DeviceMap]:
    """The ways as lines, and the node as it is beside what it would be."""
    [node] = hardware.nodes(actor=actor, cluster_id=cluster.id, node=made.node)
    model = node.devices[0].model if node.devices else ""
    now = [
        maps.Device(
            name=str(device.ordinal),
            axis=device.axis,
            holdings=[maps.Holding(held.start, held.end, HELD) for held in device.held],
            healthy=device.healthy,
            cuts=maps.edges([(one.start, one.end) for one in device.slices], device.axis),
        )
        for device in node.devices
    ]
    then = [_device(ordinal, model, way) for ordinal, way in enumerate(made.ways)]
    drawn = maps.device_map(
        id=f"recut-{made.node}",
        title=f"GPUs of {made.node}, now and then",
        owners=[HELD],
        clusters=[
            maps.Cluster(name=when, nodes=[maps.Node(name=made.node, model=model, devices=shown)])
            for when, shown in (("Now", now), ("Then", then))
        ],
    )
    return lines(made.ways), drawn


def _device(ordinal: int, model: str, way: Way) -> maps.Device:
    if not way:
        return maps.Device(name=str(ordinal), axis=maps.WHOLE)
    [slices] = mig.arrange(model=model, counts=dict(way), devices=1)
    axis = hardware.axis(model=model, mode="mig-static")
    spans = [(span.start, span.end) for _, span in slices]
    return maps.Device(name=str(ordinal), axis=axis, cuts=maps.edges(spans, axis))
