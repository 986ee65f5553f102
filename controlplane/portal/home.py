"""The first page: what runs, what waits and until when, what was spent, what is to be decided."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from clusters.models import Cluster, ClusterState
from clusters.selectors import queue_state
from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.htmx import page, partial, revision, ten_seconds, unchanged
from controlplane.kernel.queues import QueueState
from scheduler.core.lifecycle import HOLDING, State
from scheduler.selectors import accrual, listing, workloads
from scheduler.selectors.listing import Line
from scheduler.web.pages import may_submit
from tenants.access import Action, Actor
from tenants.selectors import people, prices, spend
from tenants.selectors import requests as of_requests
from tenants.selectors.requests import QuotaRequestLine

SHOWN = 6


@dataclass(frozen=True, slots=True)
class Spending:
    """Since the start of the local month; `running` and `per_hour` are estimates."""

    since: datetime
    charged: Decimal
    running: Decimal
    per_hour: Decimal


@dataclass(frozen=True, slots=True)
class Board:
    """The page's facts. `spending` is None without a role that sees any; `to_decide` are requests
    that the actor may decide; `clusters` those that take nothing new with their state, or their
    queue's, and when they were last heard of."""

    running_count: int
    starting_count: int
    waiting_count: int
    active: tuple[Line, ...]
    waiting: tuple[Line, ...]
    spending: Spending | None
    to_decide: tuple[QuotaRequestLine, ...]
    own_request_count: int
    clusters: tuple[tuple[str, str, datetime | None], ...]
    project_count: int


@page("GET", "HEAD")
def home(request: HttpRequest) -> HttpResponse:
    """For everybody; what it shows follows the roles."""
    actor = actor_of(request)
    at = ten_seconds(clock.now())
    board = _board(actor, at)
    rev = revision(board, at)
    same = unchanged(request, rev)
    if same is not None:
        return same
    context = {
        "board": board,
        "rev": rev,
        "may_submit": may_submit(actor),
    }
    return partial(request, "portal/home.html", "board", context)


def _board(actor: Actor, at: datetime) -> Board:
    counts = workloads.states(actor=actor)
    active, waiting = listing.running_and_waiting(actor=actor, limit=SHOWN)
    open_requests = of_requests.open_lines(actor=actor, at=at)
    running = counts.get(State.RUNNING, 0)
    return Board(
        running_count=running,
        starting_count=sum(counts.get(state, 0) for state in HOLDING) - running,
        waiting_count=counts.get(State.PENDING, 0),
        active=active,
        waiting=waiting,
        spending=_spending(actor, at),
        to_decide=tuple(one for one in open_requests if one.may_decide)[:SHOWN],
        own_request_count=sum(1 for one in open_requests if one.own),
        clusters=tuple(
            (name, state if state != ClusterState.ACTIVE else queue, seen_at)
            for name, state, queue, seen_at in Cluster.objects.annotate(queue=queue_state())
            .exclude(state=ClusterState.ACTIVE, queue=QueueState.OPEN)
            .order_by("name")
            .values_list("name", "state", "queue", "seen_at")
        ),
        project_count=people.projects(actor=actor).count(),
    )


def _spending(actor: Actor, at: datetime) -> Spending | None:
    if not people.projects(actor=actor, action=Action.VIEW_SPEND).exists():
        return None
    since = spend.month_start(at=at, zone=timezone.get_current_timezone())
    parts = accrual.by_project_and_flavor(actor=actor, prices=prices.at_moment(at=at), at=at)
    return Spending(
        since=since,
        charged=spend.total(actor=actor, filters=spend.Filters(since=since)),
        running=sum((part.amount for part in parts), Decimal(0)),
        per_hour=sum((part.per_hour for part in parts), Decimal(0)),
    )
