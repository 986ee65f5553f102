"""What each mode would cost a workload that is not submitted yet. Nothing is stored.

Each mode is planned here and now, from one snapshot. Prices are those of the flavor that each pod
set prefers, in the dearest cluster that has it: as the submit form sums up.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from time import perf_counter
from typing import Literal

from controlplane.kernel.errors import Invalid
from scheduler.core.bounds import firm
from scheduler.core.explaining.whatif import would_start
from scheduler.core.plan import Admit
from scheduler.core.quota.quota import Book
from scheduler.core.reasons import Reason
from scheduler.core.request import Requests
from scheduler.core.simulating.estimate import Forecast
from scheduler.core.snapshot import FlavorView, PendingView, Snapshot
from scheduler.core.units import FlavorId, ProjectId
from scheduler.selectors import losses, offers
from scheduler.selectors.load import load
from scheduler.selectors.losses import PREEMPTED, Loss
from scheduler.services import admissibility, asking, explaining, modes
from scheduler.services.explaining import Start
from scheduler.services.modes import Mode
from scheduler.services.specs import ArraySpec, WorkloadSpec
from scheduler.services.workloads import Checked
from tenants.access import Actor
from tenants.models import Project
from tenants.selectors import prices, run_times

PAST = timedelta(days=28)
"""How far back it is told what evictions cost the project."""


@dataclass(frozen=True, slots=True)
class Need:
    """Of a flavor, in thousandths: what it starts with, all of which has to be guaranteed to its
    project, and how much of what is is left now; negative where more is used."""

    flavor: str
    asked_milli: int
    left_milli: int


@dataclass(frozen=True, slots=True)
class Compared:
    """One mode. `refused` says why it could never start so; then there is neither a `start` nor a
    `reason`. `forecast` is that of what would wait. `needs` are of what does not borrow."""

    mode: Mode
    refused: str = ""
    start: Start | None = None
    reason: Reason | None = None
    forecast: Forecast | None = None
    least_per_hour: Decimal | None = None
    most_per_hour: Decimal | None = None
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """`asked` is the mode that was asked for. `past` is what evictions cost the project `since`.
    Before `min_run_time_s` it is evicted in none."""

    as_of: datetime
    asked: Mode
    modes: tuple[Compared, ...]
    min_run_time_s: int
    past: Loss
    since: datetime


def compare(
    *,
    actor: Actor,
    project: Project,
    spec: WorkloadSpec,
    array: ArraySpec | None = None,
    at: datetime,
) -> Comparison:
    """Each mode in which it, or one element of the array, can be asked for. Raises what
    `explaining.check` raises where it could never start in any of them, and TooOften."""
    checked = _checked(actor, project, spec, array, at)
    with asking.turn(actor=actor, at=at):
        compared = _planned(actor, checked, at)
    since = at - PAST
    found = losses.by_project(actor=actor, project_id=project.id, since=since, until=None)
    past = next((loss for loss in found if loss.cause == PREEMPTED), Loss(PREEMPTED))
    return Comparison(
        as_of=at,
        asked=modes.of(spec),
        modes=compared,
        min_run_time_s=run_times.in_force(of=project).seconds,
        past=past,
        since=since,
    )


def _checked(
    actor: Actor, project: Project, spec: WorkloadSpec, array: ArraySpec | None, at: datetime
) -> dict[Mode, Checked | Invalid]:
    found: dict[Mode, Checked | Invalid] = {}
    for mode in Mode:
        same = modes.within(spec, mode)
        if same is None:
            continue
        try:
            found[mode] = explaining.check(
                actor=actor, project=project, spec=same, array=array, at=at
            )
        except Invalid as error:
            found[mode] = error
    if not any(isinstance(each, Checked) for each in found.values()):
        raise next(each for each in found.values() if isinstance(each, Invalid))
    return found


def _planned(
    actor: Actor, checked: Mapping[Mode, Checked | Invalid], at: datetime
) -> tuple[Compared, ...]:
    begun = perf_counter()
    snapshot, rules = load(at=at).snapshot, explaining.rules()
    book = _book(snapshot)
    offered = offers.offers(prices=prices.at_moment(at=at))
    highest = {offer.name: offer.high for offer in offered}
    compared = []
    for mode, each in checked.items():
        if isinstance(each, Invalid):
            compared.append(Compared(mode, refused=each.message))
            continue
        pending = explaining.pending(actor=actor, checked=each, snapshot=snapshot)
        decision = would_start(snapshot, rules, pending)
        flavors = _preferred(snapshot, book, pending)
        least = _amounts(each, flavors, of="min_count")
        most = _amounts(each, flavors, of="count")
        told = Compared(
            mode,
            least_per_hour=_per_hour(least, highest),
            most_per_hour=_per_hour(most, highest),
            needs=() if mode.preemptible else _needs(book, each, least),
        )
        if isinstance(decision, Admit):
            told = replace(told, start=explaining.start(snapshot, decision))
        else:
            estimate = explaining.estimate(snapshot, rules, pending, begun=begun)
            told = replace(told, reason=decision.reason, forecast=estimate)
        compared.append(told)
    return tuple(compared)


def _book(snapshot: Snapshot) -> Book:
    """With all that is held."""
    book = Book(cohorts=snapshot.cohorts, queues=snapshot.queues, flavors=snapshot.flavors)
    for held in snapshot.holding:
        for one in held.placements:
            book.charge(project=held.project, flavor=one.flavor, amount_milli=one.amount_milli)
    return book


def _preferred(snapshot: Snapshot, book: Book, pending: PendingView) -> tuple[FlavorView, ...]:
    """For each of its pod sets the flavor that it prefers of those it may get; () where there is
    none any more, since its project has changed while it was checked."""
    flavors = {flavor.id: flavor for flavor in snapshot.flavors}
    options = Requests(flavors=flavors, book=book).of(pending).options
    return options[0].flavors if options else ()


def _amounts(
    checked: Checked, flavors: Sequence[FlavorView], *, of: Literal["min_count", "count"]
) -> Counter[str]:
    """Thousandths of those `flavors`, one for each of its pod sets, by name."""
    found: Counter[str] = Counter()
    for pod_set, flavor in zip(checked.specs[0].pod_sets, flavors, strict=False):
        found[flavor.name] += getattr(pod_set, of) * (
            admissibility.pod_milli(pod_set, flavor) or 0
        )
    return found


def _per_hour(amounts: Mapping[str, int], highest: Mapping[str, Decimal | None]) -> Decimal | None:
    """None while anything of it has no price, or it is nothing."""
    if not amounts:
        return None
    total = Decimal(0)
    for flavor, amount_milli in amounts.items():
        price = highest.get(flavor)
        if price is None:
            return None
        total += price * amount_milli / 1000
    return total


def _needs(book: Book, checked: Checked, least: Mapping[str, int]) -> tuple[Need, ...]:
    project = ProjectId(str(checked.project.id))
    ids = {name: FlavorId(str(flavor.id)) for name, flavor in checked.flavors.items()}
    return tuple(
        Need(name, asked_milli, firm.left_milli(book, project=project, flavor=ids[name]))
        for name, asked_milli in least.items()
    )
