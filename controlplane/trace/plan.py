"""What a replay is to do, handed from the process that starts Berth to the steps that run beside
it. A file, because they are separate processes."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from controlplane.trace.reading import NodeRow, PodRow, nodes, pods

SPEED = 100_000.0
"""The trace spans 149 days; at this speed they pass in 129 s, about as long as its 8,152 pods take
to be submitted at 60 a second. So run times keep their proportion to the trace's length, the
longest (145 days) included, though the pods come evenly instead of at their own times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`limit` None replays every pod. `runs_s` is a run time for all instead of their own, and
    `price` a price per GPU and hour, a decimal, for all models instead of each model's.

    `services` are the command lines of Berth's processes by name, to find them by.
    """

    nodes: str
    pods: str
    limit: int | None = None
    speed: float = SPEED
    runs_s: int | None = None
    price: str = ""
    kills: int = 0
    seed: int = 1
    url: str = ""
    tokens: str = ""
    report: str = ""
    reference: str = ""
    services: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def read_nodes(self) -> list[NodeRow]:
        return nodes(Path(self.nodes))

    def read_pods(self) -> list[PodRow]:
        return pods(Path(self.pods))[: self.limit]

    def with_services(self, services: dict[str, tuple[str, ...]]) -> Self:
        return replace(self, services=tuple(services.items()))

    def write(self, path: Path) -> None:
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Self:
        fields = json.loads(path.read_text())
        services = tuple((name, tuple(words)) for name, words in fields.pop("services"))
        return cls(**fields, services=services)
