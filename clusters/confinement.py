"""What keeps a project's pods to themselves in a cluster, and what of it somebody changed."""

from dataclasses import dataclass
from enum import StrEnum

CONFINEMENT = 2
"""Raised with each change of what an adapter makes of a Confinement, so that it is applied."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What keeps a project's pods to themselves in its namespace: no privileges, no rights, no
    network but their own.

    `limits` is the most that those which Berth makes may ask for together, of each extended
    resource, in its name's order; of one that is not named there is no limit. `egress` are the
    networks, as CIDRs, that they may reach besides each other and DNS.
    """

    namespace: str
    limits: tuple[tuple[str, int], ...] = ()
    egress: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drift:
    """One field of a confinement's object that is not as it should be: what it was found to be,
    and what it should be, as JSON. `field` "" is an object that is not there. `follows` says that
    it is made of the limits or the egress: it differs as well where those are wanted anew."""

    object: str
    field: str = ""
    found: str = ""
    wanted: str = ""
    follows: bool = False


class Repair(StrEnum):
    """What of a confinement is put right; the rest is only told."""

    NOTHING = "nothing"
    MISSING = "missing"  # objects that are not there
    ALL = "all"
