"""What goes wrong on purpose: faults of requests, of watches, and of the machines.

A fault is a JSON object: `kind`, and which requests it strikes (`verb` such as create or list,
`resource` such as pods, `name` as a part of the object's name; "*" or nothing means any), `after`
how many of them and how often (`count`, 0 for always).
"""

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count

from clusters.simulator.answers import Json, bad_request


class Kind(StrEnum):
    THROTTLE = "throttle"  # 429 with Retry-After `seconds` (0: without)
    ERROR = "error"  # `status` (500), with `message`
    FORBID = "forbid"  # 403 that names the verb and the resource
    TIMEOUT_BEFORE = "timeout-before"  # no answer for `seconds`, and nothing is done
    TIMEOUT_AFTER = "timeout-after"  # it is done, and no answer for `seconds`
    STALE_LIST = "stale-list"  # lists answer as they would have when the fault was made
    GONE = "gone"  # 410 as an HTTP status
    CUT_WATCH = "cut-watch"  # a watch ends in the middle of its next line
    HALF_OPEN = "half-open"  # a watch stays connected and says nothing any more


REQUEST_KINDS = frozenset(Kind) - {Kind.CUT_WATCH, Kind.HALF_OPEN}
WATCH_KINDS = frozenset({Kind.CUT_WATCH, Kind.HALF_OPEN})
_serial = count(1)


@dataclass(slots=True)
class Fault:
    kind: Kind
    verb: str = "*"
    resource: str = "*"
    name: str = ""
    count: int = 1
    after: int = 0
    status: int = 500
    seconds: float = 0.0
    message: str = "an injected fault"
    id: int = field(default_factory=lambda: next(_serial))

    @classmethod
    def parse(cls, body: Json) -> "Fault":
        """Raises Refusal (400) when a field is unknown or of the wrong type."""
        try:
            fields = {key: value for key, value in body.items() if key != "id"}
            kind = Kind(fields.get("kind", ""))
            if kind is Kind.STALE_LIST:
                fields["verb"] = "list"
            return cls(**{**fields, "kind": kind})
        except (ValueError, TypeError) as error:
            bad_request(f"no such fault: {error}")

    def shown(self) -> Json:
        return {key: getattr(self, key) for key in self.__slots__}


class Faults:
    """The faults that are waiting to strike, in the order they were made."""

    def __init__(self) -> None:
        self.active: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self.active.append(fault)

    def clear(self) -> None:
        self.active.clear()

    def forbids(self, *, verb: str, resource: str) -> bool:
        """Whether such a request would be forbidden; asking uses nothing up."""
        return any(
            fault.kind is Kind.FORBID and _hits(fault, verb, resource, fault.name)
            for fault in self.active
        )

    def strike(
        self, kinds: frozenset[Kind], *, verb: str, resource: str, name: str = ""
    ) -> Fault | None:
        """The fault that this request or watch suffers, used up by one; None when it is spared."""
        for fault in self.active:
            if fault.kind not in kinds or not _hits(fault, verb, resource, name):
                continue
            if fault.after > 0:
                fault.after -= 1
                continue
            if fault.count == 1:
                self.active.remove(fault)
            elif fault.count:
                fault.count -= 1
            return fault
        return None


def _hits(fault: Fault, verb: str, resource: str, name: str) -> bool:
    return fault.verb in ("*", verb) and fault.resource in ("*", resource) and fault.name in name
