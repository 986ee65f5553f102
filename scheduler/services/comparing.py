"""What each mode would cost a workload that is not submitted yet. Nothing is stored.

Each mode is planned here and now, from one snapshot. Prices are those of the flavor that each pod
set prefers, in the dearest cluster that has it: as the submit form sums up.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from time import perf_counter
from typing import Literal

from controlplane.kernel.errors import Invalid
from scheduler.core import firm
from scheduler.core.estimate import Forecast
from scheduler.core.isolation import is_enough, stricter
from scheduler.core.plan import Admit
from scheduler.core.portions import portion_milli
from scheduler.core.quota import Book
from scheduler.core.reasons import Reason
from scheduler.core.snapshot import FlavorView, Isolation, Snapshot
from scheduler.core.units import FlavorId, ProjectId
from scheduler.core.whatif import would_start
from scheduler.selectors import losses, offers
from scheduler.selectors.load import load
from scheduler.selectors.losses import PREEMPTED, Loss
from scheduler.services import asking, explaining, modes
from scheduler.services.explaining import Start
from scheduler.services.modes import Mode
from scheduler.services.specs import ArraySpec, PodSetSpec, WorkloadSpec
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
        min_run_time_s=run_times.in_force_s(project=project),
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
    offered = offers.offers(prices=prices.at_moment(at=at))
    highest = {offer.name: offer.high for offer in offered}
    compared = []
    for mode, each in checked.items():
        if isinstance(each, Invalid):
            compared.append(Compared(mode, refused=each.message))
            continue
        pending = explaining.pending(actor=actor, checked=each, snapshot=snapshot)
        decision = would_start(snapshot, rules, pending)
        least, most = _amounts(each, of="min_count"), _amounts(each, of="count")
        told = Compared(
            mode,
            least_per_hour=_per_hour(least, highest),
            most_per_hour=_per_hour(most, highest),
            needs=() if mode.preemptible else _needs(snapshot, each, least),
        )
        if isinstance(decision, Admit):
            told = replace(told, start=explaining.start(snapshot, decision))
        else:
            estimate = explaining.estimate(snapshot, rules, pending, begun=begun)
            told = replace(told, reason=decision.reason, forecast=estimate)
        compared.append(told)
    return tuple(compared)


def _amounts(checked: Checked, *, of: Literal["min_count", "count"]) -> Counter[str]:
    """Thousandths of the flavors that its pod sets prefer of those they may get, by name."""
    found: Counter[str] = Counter()
    own = Isolation(checked.project.least_isolation)
    for pod_set in checked.specs[0].pod_sets:
        least = stricter(own, pod_set.least_isolation)
        flavors = (checked.flavors[name] for name in pod_set.accepted)
        enough = (f for f in flavors if is_enough(given=f.isolation, least=least))
        each = ((flavor.name, _pod_milli(pod_set, flavor)) for flavor in enough)
        # What is checked gets one.
        name, pod_milli = next((name, milli) for name, milli in each if milli is not None)
        found[name] += getattr(pod_set, of) * pod_milli
    return found


def _pod_milli(pod_set: PodSetSpec, flavor: FlavorView) -> int | None:
    """Of the flavor in thousandths; None where its devices have less memory than is asked."""
    if pod_set.gpu_memory_mib is None:
        return pod_set.gpu_count * pod_set.gpu_milli or pod_set.cpu_milli
    return portion_milli(gpu_memory_mib=pod_set.gpu_memory_mib, flavor=flavor)


def _per_hour(amounts: Mapping[str, int], highest: Mapping[str, Decimal | None]) -> Decimal | None:
    """None while anything of it has no price."""
    total = Decimal(0)
    for flavor, amount_milli in amounts.items():
        price = highest.get(flavor)
        if price is None:
            return None
        total += price * amount_milli / 1000
    return total


def _needs(snapshot: Snapshot, checked: Checked, least: Mapping[str, int]) -> tuple[Need, ...]:
    book = Book(cohorts=snapshot.cohorts, queues=snapshot.queues, flavors=snapshot.flavors)
    for held in snapshot.holding:
        for one in held.placements:
            book.charge(project=held.project, flavor=one.flavor, amount_milli=one.amount_milli)
    project = ProjectId(str(checked.project.id))
    ids = {name: FlavorId(str(flavor.id)) for name, flavor in checked.flavors.items()}
    return tuple(
        Need(name, asked_milli, firm.left_milli(book, project=project, flavor=ids[name]))
        for name, asked_milli in least.items()
    )
