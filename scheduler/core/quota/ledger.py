"""One flavor over the whole tree: what members use, and may use. `quota` has the algebra."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from copy import copy

from scheduler.core.quota.cohorts import FLEET, Cohorts
from scheduler.core.snapshot import QuotaView
from scheduler.core.units import FlavorId


class Ledger:
    """One flavor, over the whole tree, by number."""

    __slots__ = (
        *("_beyond", "_ceilings", "_drawn", "_left", "_moved", "awaited", "capacity", "kept"),
        *("lasting", "nominal", "parents", "quotas", "total", "used"),
    )

    def __init__(self, cohorts: Cohorts, flavor: FlavorId) -> None:
        """`nominal` is the member's own; `total` sums it over the tree, lent or not. `lasting` is
        `used` without what is on its way back. `awaited` are members of whose own nominal some was
        charged for work that may not be preempted and has to wait for it (`firm.await_own`)."""
        self.parents = cohorts.parents
        self.quotas: list[QuotaView | None] = [of.get(flavor) for of in cohorts.quotas]
        self.nominal = [quota.nominal_milli if quota else 0 for quota in self.quotas]
        self.total = sum(self.nominal)
        self.capacity = list(self.nominal)
        self.used = self.lasting = [0] * len(self.nominal)
        self._drawn: list[int] | None = None
        self._left: dict[int, int] = {}
        self._beyond: set[int] | None = None
        self._moved: set[int] | None = None
        self._ceilings: dict[int, int] = {}
        self.kept = [0] * len(self.nominal)
        self.awaited: set[int] = set()
        # Children have higher numbers than their parents: from the leaves upwards.
        for number in range(len(self.nominal) - 1, FLEET, -1):
            quota = self.quotas[number]
            if quota is not None and quota.lending_limit_milli is not None:
                self.kept[number] = max(0, self.capacity[number] - quota.lending_limit_milli)
            self.capacity[self.parents[number]] += self.capacity[number] - self.kept[number]

    def copy(self) -> "Ledger":
        """Another of the same use and quota; quota does not change."""
        twin = copy(self)
        twin.used = twin.lasting = list(self.used)
        if self.lasting is not self.used:
            twin.lasting = list(self.lasting)
        twin._left, twin._moved = dict(self._left), None
        twin._beyond = None if self._beyond is None else set(self._beyond)
        twin._drawn = None if self._drawn is None else list(self._drawn)
        twin.awaited = set(self.awaited)
        return twin

    def charge(self, number: int, amount: int, *, leaves: int = 0) -> None:
        """Add to the member's use; `leaves` of it is on its way back."""
        self._left.clear()
        if self._moved is not None:
            self._moved.add(number)
        self._add(self.used, self.kept, number, amount)
        if self._beyond is not None:
            self._follow(self._beyond, number)
        if self.lasting is not self.used:
            self._add(self.lasting, self.kept, number, amount - leaves)
        if self._drawn is not None:
            self._add(self._drawn, self.nominal, number, amount - leaves)

    def leave(self, number: int, amount: int) -> None:
        """So much of the use is on its way back. Said before `drawn` is asked for."""
        if self.lasting is self.used:
            self.lasting = list(self.used)
        self._add(self.lasting, self.kept, number, -amount)

    def moved(self) -> Sequence[int]:
        """The members whose use may be another than when last asked: all of them the first time,
        after which nothing more may `leave`."""
        moved, self._moved = self._moved, set()
        if moved is None:
            return range(len(self.used))
        found = set[int]()
        for number in moved:
            while number >= FLEET and number not in found:
                found.add(number)
                number = self.parents[number]
        return list(found)

    @property
    def drawn(self) -> list[int]:
        """As `lasting`, were nothing lent: what a member's own use, and its children's beyond
        their own nominal, draw on its own nominal. Built when first asked for."""
        if self._drawn is None:
            self._drawn, parents = [0] * len(self.used), set(self.parents)
            for number, used in enumerate(self.lasting):
                if number not in parents:
                    self._add(self._drawn, self.nominal, number, used)
        return self._drawn

    def _add(self, to: list[int], stays: list[int], number: int, amount: int) -> None:
        """Add to a member, and to those above it what is beyond what `stays` below."""
        while number >= FLEET and amount:
            before = to[number]
            after = to[number] = before + amount
            amount = max(after, stays[number]) - max(before, stays[number])
            number = self.parents[number]

    def rooms(self, number: int, *, gives_way: int = 0) -> list[int]:
        """How much more the member may take within its own capacity, within its parent's, and so
        on to below the fleet, were `gives_way` of its lasting use gone."""
        return self._rooms(self.lasting, self.kept, self.capacity, number, gives_way)

    def own_rooms(self, number: int) -> list[int]:
        """As `rooms`, of what the members have themselves and nobody below them is guaranteed."""
        return self._rooms(self.drawn, self.nominal, self.nominal, number, 0)

    def _rooms(
        self, used: list[int], stays: list[int], most: list[int], number: int, gives_way: int
    ) -> list[int]:
        found, below, amount = [], 0, -gives_way
        while number > FLEET:
            before, kept = used[number], stays[number]
            after = before + amount
            room = most[number] - after
            found.append(room + below if room >= 0 else room)
            below += max(0, kept - after)
            amount = max(after, kept) - max(before, kept)
            number = self.parents[number]
        return found

    def over(self, number: int) -> int:
        """Use beyond what is guaranteed to the member; negative below it."""
        return self.used[number] - self.capacity[number]

    @property
    def beyond(self) -> AbstractSet[int]:
        """The members that are `over`. Kept up, as each search asks it. To be read at once."""
        if self._beyond is None:
            both = enumerate(zip(self.used, self.capacity, strict=True))
            self._beyond = {number for number, (used, most) in both if used > most}
        return self._beyond

    def _follow(self, beyond: set[int], number: int) -> None:
        """The use of the member has changed, and so may that of those above it."""
        while number >= FLEET:
            if self.used[number] > self.capacity[number]:
                beyond.add(number)
            else:
                beyond.discard(number)
            number = self.parents[number]

    def law(self, number: int, more: int) -> Iterator[tuple[int, int, int | None]]:
        """Each member whose use `more` raises, upwards: its number, its use then and the most that
        the law lets it use, None without a limit."""
        while more > 0:
            quota, before, kept = self.quotas[number], self.used[number], self.kept[number]
            limit = quota.borrowing_limit_milli if quota else None
            most = None if limit is None else self.capacity[number] + limit
            yield number, before + more, self.capacity[FLEET] if number == FLEET else most
            if number == FLEET:
                return
            more = max(before + more, kept) - max(before, kept)
            number = self.parents[number]

    def awaited_law(self, number: int, more: int) -> Iterator[tuple[int, int, int]]:
        """As `law`, of what is awaited: each such member, upwards, what `more` leaves drawn on its
        own nominal, and that nominal."""
        while self.awaited and number > FLEET:
            before, own = self.drawn[number], self.nominal[number]
            if number in self.awaited:
                yield number, before + more, own
            more = max(before + more, own) - max(before, own)
            number = self.parents[number]

    def is_lawful(self, number: int) -> bool:
        """Whether the law is true at the member, and above it as far as its use counts there."""
        used, quota = self.used[number], self.quotas[number]
        if number == FLEET:
            return used <= self.capacity[FLEET]
        limit = quota.borrowing_limit_milli if quota else None
        if limit is not None and used > self.capacity[number] + limit:
            return False
        return used <= self.kept[number] or self.is_lawful(self.parents[number])

    def available(self, number: int) -> int:
        """How much more the member may take, and leave what is awaited."""
        left = self._available(number)
        return min([left, *self.left_of_awaited(number)]) if self.awaited else left

    def left_of_awaited(self, number: int) -> Iterator[int]:
        """How much more the member may take of what is awaited: negative where it has too much."""
        if self.awaited:
            at = number
            for room in self.own_rooms(number):
                if at in self.awaited:
                    yield room
                at = self.parents[at]

    def _available(self, number: int) -> int:
        """Whatever is awaited. Known until the next charge: the reasons of a plan ask it for
        thousands of siblings."""
        if number not in self._left:
            self._left[number] = self._work_out(number)
        return self._left[number]

    def _work_out(self, number: int) -> int:
        if number == FLEET:
            return self.capacity[FLEET] - self.used[FLEET]
        above = self._available(self.parents[number])
        quota, used, kept = self.quotas[number], self.used[number], self.kept[number]
        if quota is not None and quota.borrowing_limit_milli is not None:
            most = self.capacity[number] + quota.borrowing_limit_milli
            above = min(above, most - max(used, kept))
        return above if used >= kept else kept - used + max(0, above)

    def firm_ceiling(self, path: Sequence[int]) -> int:
        """The most that the member at the path's end could hold of what those on it have
        themselves, if nobody else used any."""
        return min(self.ceiling(path[-1]), sum(self.nominal[n] for n in path)) if path else 0

    def ceiling(self, number: int) -> int:
        """The most that the member could hold if nobody else used any. Worked out once: quota does
        not change."""
        if number == FLEET:
            return self.capacity[FLEET]
        known = self._ceilings.get(number)
        if known is None:
            known = self.kept[number] + self.ceiling(self.parents[number])
            quota = self.quotas[number]
            if quota is not None and quota.borrowing_limit_milli is not None:
                known = min(known, self.capacity[number] + quota.borrowing_limit_milli)
            self._ceilings[number] = known
        return known
