"""The tables of what is asked for and by whom, filled from a snapshot and its draft."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.core.fleet.draft import Draft
from scheduler.core.held.elastic import is_elastic
from scheduler.core.held.holders import Holders
from scheduler.core.node import mig
from scheduler.core.quota.equivalents import Parts
from scheduler.core.quota.quota import amount_milli
from scheduler.core.quota.share import Shares
from scheduler.core.rates import Rates, dearness
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import FlavorKind, FlavorView, PendingView, Snapshot
from scheduler.core.sweep import state as s
from scheduler.core.sweep.backlog import Backlog
from scheduler.core.sweep.hardware import (
    KINDS,
    MOST_HARDWARE,
    Fleet,
    Pool,
    hardware,
    is_by_hand,
)
from scheduler.core.sweep.queues import queues
from scheduler.core.sweep.state import Flavors, Hardware, Ints, Log, State, Tree, Unfit, Work
from scheduler.core.sweep.tree import MOST, Quotas
from scheduler.core.units import ClusterId, FlavorId, ProjectId, WorkloadId

MOST_GPUS = 1 << 8
MOST_PODS = 1 << 22
MOST_CLUSTERS = 62
_UNASKED = 0, s.UNKNOWN, 0, s.UNKNOWN
"""Of an option, from FULL on."""


class Asked(NamedTuple):
    """What is asked for `of` some hardware in some clusters, by so many requests, at rates."""

    work: Work
    options: Sequence[Option]
    of: tuple[object, ...]


class Board(NamedTuple):
    """What the rows of the tables stand for."""

    backlog: Backlog
    options: Sequence[Option]
    flavors: Sequence[FlavorView]
    clusters: Sequence[ClusterId]
    projects: Sequence[ProjectId]
    fleet: Fleet


def fill(
    *,
    snapshot: Snapshot,
    draft: Draft,
    shares: Shares,
    backlog: Backlog,
    decided: Collection[WorkloadId],
    holders: Holders,
) -> tuple[State, Board]:
    """What is `decided` is in no queue. Raises Unfit."""
    flavors = sorted(snapshot.flavors, key=lambda f: f.id)
    clusters, rows = draft.clusters, {flavor.id: row for row, flavor in enumerate(flavors)}
    if len(rows) != len(flavors) or len(set(clusters)) != len(clusters):
        raise Unfit("an id is there twice")
    if not 0 < len(clusters) <= MOST_CLUSTERS or not flavors or not len(backlog):
        raise Unfit("no cluster, or too many, or nothing to decide")
    if not draft.book.flavors() <= rows.keys():
        raise Unfit("something is held of a flavor that is unknown")
    with_cores = any(flavor.kind is FlavorKind.CPU for flavor in flavors)
    free, fleet = hardware(
        snapshot=snapshot, draft=draft, clusters=clusters, with_cores=with_cores
    )
    quotas = backlog.quotas
    if quotas is None or not quotas.suit(flavors, draft.book):
        quotas = backlog.quotas = Quotas(flavors, draft.book)
    tree, projects = quotas.tree(draft.book, shares), list(backlog.projects)
    if tree.ledgers[s.OVER].max() >= MOST_HARDWARE:
        raise Unfit("more is used than the shares can tell")
    of_flavors = _flavors(flavors, rows, len(clusters), fleet, draft)
    groups = quotas.groups(holders)
    _note_holders(tree, of_flavors, groups)
    asked = _asked(backlog, rows, clusters, fleet, free, of_flavors, draft)
    waiting = queues(
        snapshot=snapshot,
        cohorts=draft.book.cohorts,
        levels=quotas.levels(projects, shares),
        backlog=backlog,
        decided=backlog.rows_of(decided),
        groups=groups,
        models=1 + int(of_flavors.flavors[:, s.MODEL].max()),
        models_of=of_flavors.flavors[:, s.MODEL],
    )
    made = State(
        free,
        of_flavors,
        tree,
        waiting,
        asked.work._replace(options=asked.work.options.copy()),
        _log(backlog, free, asked.work, len(clusters), with_cores, len(snapshot.clusters) > 1),
    )
    return made, Board(backlog, asked.options, flavors, clusters, projects, fleet)


def _note_holders(tree: Tree, of_flavors: Flavors, groups: Ints) -> None:
    """Set HOLDERS."""
    member, flavor, _, count = groups.T
    models, ledgers = of_flavors.flavors[:, s.MODEL], tree.ledgers
    held = np.zeros((int(models.max()) + 1, ledgers.shape[2]), np.int64)
    np.add.at(held, (models[flavor], member), count)
    some = np.zeros(ledgers.shape[1:], np.bool_)
    some[flavor, member] = True
    for row, whole in enumerate(of_flavors.flavors[:, s.WHOLE_OF].tolist()):
        if whole >= 0:
            some[whole] |= some[row] & (ledgers[s.QUOTED, whole] == 1)
    ledgers[s.HOLDERS] = np.where(some, held[models], 0)


def _asked(
    backlog: Backlog,
    rows: Mapping[FlavorId, int],
    clusters: Sequence[ClusterId],
    fleet: Fleet,
    free: Hardware,
    flavors: Flavors,
    draft: Draft,
) -> Asked:
    """As it was the last time, where nobody has asked for anything else since, nor is charged
    otherwise."""
    samples, kept = backlog.samples, backlog.asked
    of = fleet.hardware, tuple(clusters), len(samples), draft.rates.listed
    if isinstance(kept, Asked) and kept.of == of:
        return kept
    work, options = _work(samples, rows, clusters, fleet, draft.book.parts, draft.rates)
    _hope(free, flavors, work, fleet)
    made = backlog.asked = Asked(work, options, of)
    return made


def _work(
    samples: Mapping[Request, PendingView],
    rows: Mapping[FlavorId, int],
    clusters: Sequence[ClusterId],
    fleet: Fleet,
    parts: Parts,
    rates: Rates,
) -> tuple[Work, list[Option]]:
    options: list[Option] = []
    of_requests: list[tuple[int, ...]] = []
    sets: list[tuple[int, ...]] = []
    of_options: list[tuple[int, ...]] = []
    needs: list[tuple[int, int]] = []
    accepted: list[int] = []
    for request, sample in samples.items():
        first, first_option = len(sets), len(options)
        for i in request.order:
            p = sample.pod_sets[i]
            asks = p.count, p.min_count, p.cpu_milli, p.memory_mib, p.gpu_count
            sets.append((*asks, amount_milli(pod_set=p), i))
        for option in request.options:
            of_options.append(
                (len(needs), len(needs) + len(option.needs), len(accepted), *_UNASKED)
            )
            needs += [(rows[flavor], min(asked, MOST)) for flavor, asked in option.needs]
            accepted += [rows[option.flavors[i].id] for i in request.order]
            options.append(option)
        plain = (
            sample.topology is None
            and not (request.bound or request.near or request.unlike)
            and all(map(_is_plain, sets[first:]))
            and not any(is_by_hand(fleet, flavor) for o in request.options for flavor in o.flavors)
            and not (is_elastic(sample) and parts.bound(project=sample.project))
        )
        bits = sum(1 << n for n, id in enumerate(clusters) if request.accepts(id))
        ranges = first, len(sets), first_option, len(options)
        rest = bits, int(not plain), min(request.count, MOST), int(not request.preemptible)
        of_requests.append((*ranges, *rest, s.UNKNOWN))
    held = [row if _is_plain(row) else (0,) * s.SET_COLUMNS for row in sets]
    made = Work(
        np.array(of_requests, np.int64).reshape(len(of_requests), s.REQUEST_COLUMNS),
        np.array(held, np.int64).reshape(len(held), s.SET_COLUMNS),
        np.array(of_options, np.int64).reshape(len(of_options), s.OPTION_COLUMNS),
        np.array(needs, np.int64).reshape(len(needs), 2),
        np.array(accepted, np.int64),
        _dearness(rates, options, clusters),
    )
    return made, options


def _dearness(rates: Rates, options: Sequence[Option], clusters: Sequence[ClusterId]) -> s.Ints:
    """Places in the order of what is charged: sums of money may have more than 63 bits."""
    made = np.zeros((len(options), len(clusters)), np.int64)
    for row, option in enumerate(options):
        if hourly := rates.hourly(option.amounts):
            dear = [dearness(hourly, cluster) for cluster in clusters]
            made[row] = list(map(sorted(set(dear)).index, dear))
    return made


def _is_plain(row: tuple[int, ...]) -> bool:
    count, least, cpu, memory, gpus, amount, _ = row
    return (
        0 <= least <= count <= MOST_PODS
        and count > 0
        and 0 <= cpu < MOST_HARDWARE
        and 0 <= memory < MOST
        and 0 <= gpus < MOST_GPUS
        and count * amount < MOST
    )


def _flavors(
    flavors: Sequence[FlavorView],
    rows: Mapping[FlavorId, int],
    clusters: int,
    fleet: Fleet,
    draft: Draft,
) -> Flavors:
    models = {model: n for n, model in enumerate(sorted({f.model for f in flavors if f.model}))}
    made = Flavors(
        np.zeros((len(flavors), s.FLAVOR_COLUMNS), np.int64),
        np.full((len(flavors), s.MASKS, s.CUT_COLUMNS), -1, np.int64),
        np.full((len(flavors), clusters), -1, np.int64),
        np.full((len(flavors), clusters), s.UNLIMITED, np.int64),
    )
    for row, flavor in enumerate(flavors):
        kind = KINDS.get(flavor.kind, s.CORES)
        made.flavors[row, s.FLAVOR_KIND] = kind
        made.flavors[row, s.MODEL] = models[flavor.model] + 2 if flavor.model else s.ANY
        made.flavors[row, s.FLEET] = draft.book.fleet_nominal(flavor=flavor.id) or 1
        part = draft.book.parts.known(flavor=flavor.id)
        made.flavors[row, s.WHOLE_OF] = -1 if part is None else rows[part.whole]
        made.flavors[row, s.PART] = 0 if part is None else part.milli
        for cluster in range(clusters):
            key = Pool(cluster, kind, flavor.model if kind != s.CORES else "")
            made.pool_of[row, cluster] = fleet.pools.get(key, -1)
        if kind == s.CUT:
            _cuts(made.cuts[row], flavor, draft)
    return made


def _cuts(table: s.Ints, flavor: FlavorView, draft: Draft) -> None:
    spans = [mig.mask(x) for x in mig.legal_spans(model=flavor.model, profile=flavor.profile)]
    found = [draft.slices.cheapest(flavor=flavor, taken=bits) for bits in range(s.MASKS)]
    costs = {cost: n for n, cost in enumerate(sorted({cut[:2] for cut in found if cut}))}
    for bits, cut in enumerate(found):
        table[bits, s.STARTS] = sum(1 for span in spans if not span & bits)
        if cut is not None:
            table[bits, s.COST], table[bits, s.CUTS] = costs[cut[:2]], mig.mask(cut.span)
    tried = draft.slices.in_order(flavor=flavor, masks=range(s.MASKS))
    table[: len(tried), s.TRIED] = tried


def _log(
    backlog: Backlog, free: Hardware, work: Work, clusters: int, with_cores: bool, offered: bool
) -> Log:
    """`offered`: what became of each cluster is written down too."""
    pods = int(backlog.members @ np.minimum(backlog.pods, MOST_PODS + 1))
    if pods > MOST_PODS:
        raise Unfit("more pods than there is place to write down")
    devices = int((free.devices[:, :, s.TAKEN] >= 0).sum())
    # What fits: a device or a slice each, or any number of pods that ask for cores alone.
    fits = pods if with_cores else min(pods, devices * 8)
    options = int((work.requests[:, s.OPTIONS_BEYOND] - work.requests[:, s.OPTIONS]).max())
    counts, most = np.zeros(s.COUNTS, np.int64), len(backlog) + 1
    counts[s.OFFERED] = int(offered)
    return Log(  # a row is read only once it was written
        np.empty((most, s.ADMIT_COLUMNS), np.int64),
        np.empty((fits + 1, s.PLACE_COLUMNS), np.int64),
        np.empty((devices * 8 + MOST_GPUS, 2), np.int64),
        counts,
        np.zeros(clusters, np.int64),
        np.empty((most if offered else 0, clusters, s.OFFER_COLUMNS), np.int64),
        np.empty((most if options > 1 else 0, options), np.int64),
    )


def _hope(h: Hardware, f: Flavors, w: Work, fleet: Fleet) -> None:
    """Options that surely fit into the empty fleet: of like pods, each beside the others."""
    cpu = np.array([node.cpu_milli for node in fleet.nodes], np.int64)
    memory = np.array([node.memory_mib for node in fleet.nodes], np.int64)
    devices = [(h.devices[:, :, s.POOL] == n).sum(axis=1) for n in range(len(h.pools))]
    for first, beyond, option, options_beyond, clusters, hard, *_ in w.requests.tolist():
        if hard or beyond != first + 1:
            continue
        _, least, cores, mib, gpus, *_ = w.sets[first].tolist()
        for row in range(option, options_beyond):
            flavor = int(w.accepted[w.options[row, s.ACCEPTED]])
            kind = int(f.flavors[flavor, s.FLAVOR_KIND])
            if kind == s.CORES and not cores:
                continue
            if kind == s.CUT and (gpus > 1 or not f.cuts[flavor, 0, s.STARTS]):
                continue
            for cluster, pool in enumerate(f.pool_of[flavor].tolist()):
                if pool >= 0 and clusters >> cluster & 1:
                    if kind == s.CORES:
                        pods = (h.nodes[:, s.CORES_POOL] == pool) * MOST_PODS
                    else:
                        pods = devices[pool] // max(gpus, 1)
                    pods = np.minimum(pods, cpu // cores if cores else pods)
                    pods = np.minimum(pods, memory // mib if mib else pods)
                    if np.maximum(pods, 0).sum() >= least:
                        w.options[row, s.HOPE] = 1
