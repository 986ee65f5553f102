"""Fair share: how far each member of the cohort tree is over what it is guaranteed.

Dominant share (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011), of what is borrowed only,
as in Kueue's fair sharing (KEP-1714): the largest, over flavors, of what is used beyond nominal as
a part of the fleet's nominal, divided by the weight. Whoever has less comes first, level by level:
tenants are compared before their departments, and those before their projects.

Where two members of one level are equally far over it, what they used in the past counts, halved
for each half-life since, in the same measure: all of it as a part of the fleet's nominal, divided
by the weight. Level by level, as in Slurm's Fair Tree (slurm.schedmd.com/fair_tree.html).
"""

from collections.abc import Iterable, Mapping, Sequence

from scheduler.core.quota.quota import Book
from scheduler.core.units import FlavorId, ProjectId

SCALE = 10**8
"""A share is an int: SCALE is the whole fleet's nominal of a flavor at weight 1."""

WITHOUT_WEIGHT = 1 << 62
"""The share of who borrows without a weight: more than any other."""


class Shares:
    """Shares of the members of the book's tree, kept up with `charge`.

    A cohort's guarantee and use are the sums of its projects' and its own: inside a tenant one
    project may use what another leaves, before either counts as borrowing from other tenants.
    """

    __slots__ = ("_book", "_levels", "_over", "_past", "_paths")

    def __init__(self, *, book: Book) -> None:
        """Starts from what `book` has in use."""
        self._book = book
        cohorts = book.cohorts
        self._paths = {project: cohorts.paths[n] for project, n in cohorts.number.items()}
        self._levels = cohorts.depth
        self._over: dict[FlavorId, list[int]] = {}
        for (project, flavor), amount in book.usage().items():
            self._add(self._paths.get(project, ()), flavor, amount)
        self._past = _past(book) if any(cohorts.pasts) else None

    @property
    def has_past(self) -> bool:
        """Whether anything that was used in the past counts still."""
        return self._past is not None

    def of(self, *, project: ProjectId) -> tuple[int, ...]:
        """Its tenant's share, its department's, and so on to its own, as many as the tree is deep.

        A project that hangs higher has its own share in the place of departments. 0 is within the
        guarantee; () is an unknown project.
        """
        path = self._paths.get(project, ())
        return self._to_the_leaf([_share(self._book, self._over, number) for number in path])

    def past(self, *, project: ProjectId) -> tuple[int, ...]:
        """As `of`, for what was used in the past: SCALE is all of the fleet's nominal of a flavor,
        held for a second just now, at weight 1."""
        path = self._paths.get(project, ())
        return self._to_the_leaf([self._past[number] if self._past else 0 for number in path])

    def rank(self, *, project: ProjectId) -> tuple[int, ...]:
        """What is compared of projects, the lowest first: at each level the share, then the past.

        While shares are charged it only grows, and without any past it is `of`.
        """
        shares = self.of(project=project)
        if self._past is None:
            return shares
        pairs = zip(shares, self.past(project=project), strict=True)
        return tuple(term for pair in pairs for term in pair)

    def charge(self, *, project: ProjectId, flavor: FlavorId, amount_milli: int) -> None:
        """The project's use has grown by that much, or shrunk; of the flavor's model too."""
        for of, amount in self._book.parts.charges(
            project=project, flavor=flavor, amount_milli=amount_milli
        ):
            self._add(self._paths.get(project, ()), of, amount)

    def over(self, *, flavor: FlavorId) -> Sequence[int]:
        """Use of the flavor beyond nominal, negative below it, by the numbers of the tree. To be
        read."""
        return self._of(flavor)

    def _of(self, flavor: FlavorId) -> list[int]:
        over = self._over.get(flavor)
        if over is None:
            totals = self._book.cohorts.totals
            over = self._over[flavor] = [-total.get(flavor, 0) for total in totals]
        return over

    def _to_the_leaf(self, terms: list[int]) -> tuple[int, ...]:
        return (*terms, *terms[-1:] * (self._levels - len(terms)))

    def _add(self, path: Iterable[int], flavor: FlavorId, amount_milli: int) -> None:
        over = self._of(flavor)
        for number in path:
            over[number] += amount_milli


def _past(book: Book) -> list[int]:
    """By number. A flavor of which nobody has quota any more is forgotten."""
    cohorts, used = book.cohorts, dict[FlavorId, list[int]]()
    for number, past in enumerate(cohorts.pasts):
        for flavor, milli_s in past.items():
            if book.fleet_nominal(flavor=flavor):
                of = used.setdefault(flavor, [0] * len(cohorts.paths))
                for member in cohorts.paths[number]:
                    of[member] += milli_s
    return [_share(book, used, number) for number in range(len(cohorts.paths))]


def _share(book: Book, use: Mapping[FlavorId, Sequence[int]], number: int) -> int:
    """What that use, by flavor and number, makes of the member's share."""
    found = [
        of[number] * SCALE // (book.fleet_nominal(flavor=flavor) or 1)
        for flavor, of in use.items()
        if of[number] > 0
    ]
    weight = book.cohorts.weights[number]
    if not found:
        return 0
    return max(found) // weight if weight > 0 else WITHOUT_WEIGHT
