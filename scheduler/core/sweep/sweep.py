"""Plain work, decided in bulk: the queue of a plan that hands out only what is not plain.

A sweep stands in the place of `order.Heads`. It takes head after head in the same order and starts
what it can over arrays (`running`), as the plan by hand would; tests compare the two. It stops at
a head that needs more than arrays: devices that are shared or cut once and for all, media engines,
topology, flavors that are spread, caps, budgets, an eviction that might help, or room to be kept.
Then it brings the draft up to date, and once that head was decided, the arrays.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from scheduler.core.admitting.admission import Admission
from scheduler.core.admitting.begun import Begun
from scheduler.core.admitting.claims import ANY
from scheduler.core.admitting.order import Left, Why
from scheduler.core.evicting.preempt import Evictions
from scheduler.core.guarding.backfill import Backfill
from scheduler.core.guarding.quota_guard import NEVER, QuotaGuard
from scheduler.core.held.holders import Holders
from scheduler.core.plan import Admit
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.guarantees import BORROWED
from scheduler.core.quota.share import Shares
from scheduler.core.reasons import Reason
from scheduler.core.request import Request
from scheduler.core.snapshot import FlavorKind, PendingView, Snapshot
from scheduler.core.sweep import running
from scheduler.core.sweep import state as s
from scheduler.core.sweep.backlog import Backlog
from scheduler.core.sweep.filling import fill
from scheduler.core.sweep.hardware import write_room
from scheduler.core.sweep.state import Unfit
from scheduler.core.sweep.telling import Teller
from scheduler.core.sweep.totals import Totals
from scheduler.core.sweep.writing import Writer
from scheduler.core.units import FlavorId, ProjectId, WorkloadId

__all__ = ["Backlog", "Sweep", "Unfit"]


class Sweep:
    """One plan's queue. Hands out each workload that is to be decided by hand, once a round."""

    def __init__(
        self,
        *,
        snapshot: Snapshot,
        backlog: Backlog,
        decided: Collection[WorkloadId],
        holders: Holders,
        admission: Admission,
        shares: Shares,
        evictions: Evictions | None,
        begun: Begun,
        backfill: Backfill,
        guard: QuotaGuard,
    ) -> None:
        """What is `decided` is left out. `begun` says how many more may start, and is told of each
        that does. Who does not start is handed out when `backfill` may keep room for it, and has
        quota kept as the `guard` would. Raises Unfit when the arrays can't hold the snapshot."""
        try:
            self._state, self._board = fill(
                snapshot=snapshot,
                draft=admission.draft,
                shares=shares,
                backlog=backlog,
                decided=decided,
                holders=holders,
            )
        except OverflowError as error:
            raise Unfit("a number has more than 63 bits") from error
        teller = Teller(
            log=self._state.log,
            board=self._board,
            clusters=snapshot.clusters,
            rates=admission.draft.rates,
        )
        self._writer = Writer(state=self._state, board=self._board, teller=teller)
        admission.draft.count_by(Totals(state=self._state, board=self._board))
        self._admission = admission
        self._shares = shares
        self._evictions = None if evictions is None or evictions.idle else evictions
        self._begun = begun
        self._backfill = backfill
        self._guard = guard
        self._at = snapshot.at
        self._current = -1
        self._listed: tuple[s.Ints, s.Ints] | None = None
        self._ahead_before = np.full_like(self._state.queues.ahead, s.NOBODY)
        self._preemptors = 0
        self._has_firm = bool(self._state.work.requests[:, s.FIRM].any())
        self._learn_use()
        self._learn_guard(guard)
        mixed = self._state.queues.projects[:, s.MIXED]
        self.mixed = {self._board.projects[i] for i in np.flatnonzero(mixed).tolist()}
        self._learn_options()
        running.reopen(self._state)

    def next(self) -> PendingView | None:
        """The head that comes first now and is to be decided by hand; None when none is left, or
        when as many start as may."""
        self._settle()
        self._listed = None
        most = int(self._state.log.counts[s.ADMITTED]) + self._begun.left
        self._current = int(running.run(self._state, self._admission.tier, most))
        self._tell()
        return self._board.backlog.view(self._current) if self._current >= 0 else None

    def request_of(self, pending: PendingView) -> Request:
        """As `Heads.request_of`."""
        return self._board.backlog.request_of(pending)

    def first_since(self, since: int) -> PendingView | None:
        """As `Heads.first_since`."""
        found = running.first_since(self._state, self._current, since)
        return self._board.backlog.view(found) if found >= 0 else None

    def close(self) -> None:
        """The workload handed out last did not start: neither will its like in this round."""
        running.close(self._state, self._current)
        self._learn()
        self._current = -1

    def reopen(self) -> None:
        """Another round, over all that still waits."""
        self._settle()
        self._listed = None
        if self._admission.tier != BORROWED:
            ahead = self._state.queues.ahead  # as `Claims.begin` has it, of all projects
            np.maximum(self._ahead_before, ahead, out=self._ahead_before)
            ahead[:] = s.NOBODY
        running.reopen(self._state)

    def left(self) -> Iterator[Left]:
        """As `Heads.left`."""
        closed, rows = self._left()
        backlog, begin = self._board.backlog, 0
        ids = backlog.ids[rows].tolist()
        for number, size in zip(closed.tolist(), self._sizes(closed).tolist(), strict=True):
            end, request = begin + size, backlog.classes[number].of
            yield Left(backlog.view(rows[begin]), tuple(ids[begin:end]), request)
            begin = end

    def behind(self) -> tuple[WorkloadId, ...]:
        """As `Heads.behind`."""
        closed, rows = self._left()
        return tuple(sorted(self._board.backlog.ids[rows[self._sizes(closed).sum() :]].tolist()))

    def told(self, why: Why) -> Iterator[tuple[Reason, tuple[WorkloadId, ...]]]:
        """As `Heads.told`. Of classes that are alike the first is asked about."""
        closed, rows = self._left()
        self._learn_use()
        running.compare(self._state)
        backlog, sizes = self._board.backlog, self._sizes(closed)
        likes = self._state.queues.classes[closed, s.LIKE]
        begins, numbers = np.cumsum(sizes) - sizes, np.zeros(len(backlog.classes), np.int64)
        reasons: dict[Reason, int] = {}
        for nth in np.flatnonzero(likes == closed).tolist():
            of = closed[nth]
            reason = why(backlog.view(rows[begins[nth]]), backlog.classes[of].of)
            numbers[of] = reasons.setdefault(reason, len(reasons))
        of_classes = numbers[likes]
        in_turn = np.argsort(of_classes, kind="stable")
        listed = rows[_ranges(begins[in_turn], sizes[in_turn])]
        counts = np.zeros(len(reasons), np.int64)
        np.add.at(counts, of_classes, sizes)
        return backlog.listed(
            dict(zip(reasons, np.split(listed, np.cumsum(counts)), strict=False))
        )

    def _left(self) -> tuple[s.Ints, s.Ints]:
        """The classes that were closed, in that order, and the rows of all who did not start:
        class after class, last who is of none of them."""
        if self._listed is None:
            self._settle()
            queues, rows = self._state.queues, running.leave(self._state)
            self._listed = queues.shut[: self._state.log.counts[s.SHUT]], queues.left[:rows]
        return self._listed

    def _sizes(self, closed: s.Ints) -> s.Ints:
        """How many of each class did not start."""
        sizes: s.Ints = self._state.queues.classes[closed, s.LEFT]
        return sizes

    def _settle(self) -> None:
        """The workload handed out last, unless it was closed, has been decided."""
        if self._current >= 0:
            self._state.queues.states[self._current] = s.DECIDED
            self._learn()
            self._current = -1

    def _tell(self) -> None:
        """Bring the plan by hand up to date with what has been started since."""
        if self._current >= 0:
            self._tell_claims()
        self._tell_kept()
        options = self._state.work.options
        for row in self._asked():
            option = self._board.options[row]
            if options[row, s.FULL]:
                self._admission.fill(option=option)
            if options[row, s.HOPE] == 1:
                self._admission.has_hope(option=option)
        started = self._writer.started()
        for pending, admit in started:
            self._begun.add(pending, admit)
        if started:
            self._charge(started)
            placed = [place for _, admit in started for place in admit.places]
            self._admission.draft.let_in(holders=placed)
            self._admission.draft.changed()  # which the tables know

    def _asked(self) -> range:
        """The options of the workload handed out last; all of them when none was."""
        if self._current < 0:
            return range(len(self._board.options))
        of = self._state.queues.workloads[self._current, s.CLASS]
        request = self._state.work.requests[self._state.queues.classes[of, s.REQUEST]]
        return range(int(request[s.OPTIONS]), int(request[s.OPTIONS_BEYOND]))

    def _charge(self, started: Sequence[tuple[PendingView, Admit]]) -> None:
        """All at once: what a project is charged itself tells the use above it, and that of a
        model what is charged there."""
        board, book = self._board, self._admission.draft.book
        projects = {pending.project: None for pending, _ in started}
        rows = [board.backlog.projects[project] for project in projects]
        members = self._state.queues.projects[rows, s.MEMBER].tolist()
        for row, flavor in enumerate(board.flavors):
            if flavor.kind is FlavorKind.MODEL:
                continue
            before = book.ledger(flavor.id).used
            now = self._state.tree.ledgers[s.USED, row, members].tolist()
            more = [used - before[member] for member, used in zip(members, now, strict=True)]
            for project, amount in zip(projects, more, strict=True):
                if amount:
                    book.charge(project=project, flavor=flavor.id, amount_milli=amount)
                    self._shares.charge(project=project, flavor=flavor.id, amount_milli=amount)

    @property
    def _project(self) -> tuple[int, ProjectId]:
        """Of the workload handed out last: its row, and which it is."""
        row = int(self._state.queues.workloads[self._current, s.PROJECT])
        return row, self._board.projects[row]

    def _tell_claims(self) -> None:
        claims, (row, project) = self._admission.claims, self._project
        told = (
            (self._state.queues.ahead[row], claims.here(project)),
            (self._ahead_before[row], claims.before(project)),
        )
        for column, model in self._columns():
            for ahead, claim in told:
                if ahead[column] != s.NOBODY:
                    claim[model] = int(ahead[column])

    def _tell_kept(self) -> None:
        """What is kept in the tables: of the project of the workload handed out last; of all when
        none was."""
        queues, ledgers = self._state.queues, self._state.tree.ledgers
        if self._state.log.counts[s.GUARDED] == NEVER:
            return
        members = slice(None)
        if self._current >= 0:
            row = queues.workloads[self._current, s.PROJECT]
            member = int(queues.projects[row, s.MEMBER])
            members = slice(member, member + 1)
        keeps, keepers, back_in = (
            ledgers[column][:, members] for column in (s.KEEPS, s.KEEPER, s.BACK_IN)
        )
        found: dict[tuple[int, int], dict[FlavorId, int]] = {}
        for row, column in np.argwhere(keeps).tolist():
            key = int(keepers[row, column]), int(back_in[row, column])
            found.setdefault(key, {})[self._board.flavors[row].id] = int(keeps[row, column])
        for (keeper, in_s), amounts in found.items():
            back_at = None if in_s == s.UNKNOWN else self._at + in_s
            view = self._board.backlog.view(keeper)
            self._admission.kept.keep(view, amounts, back_at=back_at)

    def _learn_kept(self, project: ProjectId) -> None:
        """What is kept by hand in the project."""
        ledgers, backlog = self._state.tree.ledgers, self._board.backlog
        member = self._admission.draft.book.cohorts.number.get(project, FLEET)
        ledgers[s.KEEPS, :, member] = 0
        of = self._admission.kept.of(project)
        for row, flavor in enumerate(self._board.flavors if of else ()):
            if kept := of.get(flavor.id):
                [keeper] = backlog.rows_of([kept.pending.id])
                ledgers[s.KEEPS, row, member], ledgers[s.KEEPER, row, member] = kept.amount, keeper
                in_s = s.UNKNOWN if kept.back_at is None else kept.back_at - self._at
                ledgers[s.BACK_IN, row, member] = in_s

    def _learn_guard(self, guard: QuotaGuard) -> None:
        queues, counts = self._state.queues, self._state.log.counts
        counts[s.GUARDED], counts[s.RECLAIMS] = guard.since, int(guard.reclaims)
        queues.classes[:, s.OLDEST] = s.UNLIMITED
        if guard.since == NEVER:
            return
        waiting = queues.workloads[queues.queue]
        np.minimum.at(queues.classes[:, s.OLDEST], queues.class_at, waiting[:, s.SUBMITTED])
        limited = waiting[:, s.LIMIT_S] < s.UNLIMITED
        queues.projects[waiting[limited, s.PROJECT], s.LIMITED] = 1

    def _columns(self) -> Iterator[tuple[int, str]]:
        """The columns of `ahead`, and the models that they are for."""
        yield from ((s.ANY, ANY), (s.NO_MODEL, ""))
        for row, flavor in enumerate(self._board.flavors):
            if flavor.model:
                yield int(self._state.flavors.flavors[row, s.MODEL]), flavor.model

    def _learn(self) -> None:
        """What was done by hand since the last head."""
        hardware, rank = self._state.hardware, self._board.fleet.rank
        draft = self._admission.draft
        changed, rooms = draft.changed(), draft.held()
        for node in changed & rank.keys():
            write_room(hardware, rank[node], rooms[node])
            running.refresh(hardware, rank[node])
        if changed:
            self._learn_use()
        row, project = self._project
        ahead, claim = self._state.queues.ahead[row], self._admission.claims.here(project)
        for column, model in self._columns():
            ahead[column] = claim.get(model, s.NOBODY)
        self._learn_options()
        self._learn_kept(project)

    def _learn_use(self) -> None:
        """Of the members whose use has been charged since."""
        book, promised = self._admission.draft.book, self._admission.promised
        ledgers = self._state.tree.ledgers
        for row, flavor in enumerate(self._board.flavors):
            ledger, over = book.ledger(flavor.id), self._shares.over(flavor=flavor.id)
            told = {s.USED: ledger.used, s.LASTING: ledger.lasting, s.OVER: over}
            if self._has_firm:
                told[s.DRAWN] = ledger.drawn
            moved = ledger.moved()
            _write(ledgers[:, row], moved, told)
            self._state.tree.shares[moved] = s.UNKNOWN
            if promised is not None:
                ledger = promised.book.ledger(flavor.id)
                told = {s.PROMISED: ledger.used}
                if self._has_firm:
                    told[s.PROMISED_DRAWN] = ledger.drawn
                    ledgers[s.AWAITED, row, sorted(ledger.awaited)] = 1
                _write(ledgers[:, row], ledger.moved(), told)
            ledgers[s.GIVERS, row, FLEET] = s.UNKNOWN
        self._state.log.counts[s.PROMISES] = int(promised is not None)

    def _learn_options(self) -> None:
        """Of the options that were asked for; of all when somebody was evicted for since."""
        options, counts = self._state.work.options, self._state.log.counts
        evictions = self._evictions
        preemptors = evictions.preemptors if evictions is not None else 0
        rows = self._asked()
        if preemptors != self._preemptors:
            rows, self._preemptors = range(len(self._board.options)), preemptors
        for row in rows:
            option = self._board.options[row]
            options[row, s.FULL] |= self._admission.is_full(option=option)
            hope, there = self._admission.hope(option=option), self._guard.known(option=option)
            if hope is not None:
                options[row, s.HOPE] = int(hope)
            if there is not None:
                options[row, s.THERE] = int(there)
            if evictions is not None:
                options[row, s.STUCK] = int(evictions.is_stuck(option=option))
        counts[s.WAITED_SINCE] = self._backfill.waited_since
        if evictions is not None:
            self._learn_soon(evictions, rows)
            counts[s.CAN_EVICT] = int(evictions.may_evict)
            counts[s.COMING] = int(evictions.coming)

    def _learn_soon(self, evictions: Evictions, options: range) -> None:
        """Of the flavors of those options. What starts from then on is taken off."""
        known, board = self._state.flavors.soon, self._board
        asked = {flavor.id for row in options for flavor in board.options[row].flavors}
        for row, flavor in enumerate(board.flavors):
            for column, cluster in enumerate(board.clusters if flavor.id in asked else ()):
                free = evictions.free_soon_milli(cluster=cluster, flavor=flavor)
                if free is not None:
                    known[row, column] = free


def _write(table: s.Ints, members: Sequence[int], told: Mapping[int, Sequence[int]]) -> None:
    """Into the ledgers of the table, what is told of those members."""
    for column, values in told.items() if members else ():
        table[column, members] = [values[number] for number in members]


def _ranges(begins: s.Ints, sizes: s.Ints) -> s.Ints:
    """One range after the other: from its begin, so many numbers."""
    at: s.Ints = np.repeat(begins - np.cumsum(sizes) + sizes, sizes)
    at += np.arange(len(at))
    return at
