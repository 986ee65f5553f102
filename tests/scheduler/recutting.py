"""A stage whose first node is cut anew: eight whole GPUs become halves and whole ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from clusters.models import Node
from clusters.port import DeviceReport, NodeReport, PodPhase, PodReport
from clusters.services import inventory
from controlplane.audit.models import AuditEvent
from scheduler.loop.recutting import recuts as loop
from scheduler.loop.recutting.steps import SETTLE
from scheduler.loop.watching.hardware import arrange
from scheduler.models import Recut, RecutMode
from scheduler.services import recuts
from tests.factories import AT
from tests.scheduler.stage import Stage

HOUR = timedelta(hours=1)
WHOLE: tuple[Mapping[str, int], ...] = ({},) * 8
HALVES: tuple[Mapping[str, int], ...] = ({"3g.40gb": 2},) * 4 + ({},) * 4


@dataclass
class Recutting:
    stage: Stage
    at: datetime = AT

    @property
    def node(self) -> Node:
        return Node.objects.get(name="n1")

    @property
    def row(self) -> Recut:
        return Recut.objects.latest("planned_at", "id")

    @property
    def there(self) -> NodeReport:
        return self.stage.port.nodes["n1"]

    def plan(self, **fields: Any) -> Recut:  # Any: of an Asked
        told = {
            "node": self.node,
            "cuts": HALVES,
            "mode": RecutMode.WAIT,
            "starts_at": self.at,
            "ends_at": self.at + HOUR,
            "actor": "user:1",
            "actor_name": "oz",
        }
        return recuts.plan(asked=recuts.Asked(**{**told, **fields}), at=self.at)

    def go_on(self, after: timedelta = timedelta(0)) -> str:
        """The state after another look, so much later."""
        self.at += after
        loop.carry_on(port=self.stage.port, cluster=self.stage.cluster, at=lambda: self.at)
        return self.row.state

    def told(self) -> list[str]:
        events = AuditEvent.objects.filter(action__startswith="recut.").order_by("id")
        return [event.action.removeprefix("recut.") for event in events]

    def watched(self) -> None:
        """The inventory is told of the node as it is."""
        inventory.sync(
            cluster=self.stage.cluster,
            reports=[self.there],
            complete=False,
            arrange=arrange,
            at=self.at,
        )

    def to_cutting(self, **fields: Any) -> None:  # Any: as `plan`
        """The MIG manager has been told, and has said nothing yet."""
        self.plan(**fields)
        assert self.go_on() == "emptying"
        assert self.go_on(SETTLE) == "cutting"
        assert self.there.mig_config == self.row.config


def recutting(stage: Stage) -> Recutting:
    for node in stage.nodes:
        stage.port.nodes[node.name] = NodeReport(
            name=node.name,
            hostname=node.hostname,
            uid=f"uid-{node.name}",
            ready=True,
            schedulable=True,
            cpu_milli=node.cpu_milli,
            memory_mib=node.memory_mib,
            devices=tuple(
                DeviceReport(ordinal, "NVIDIA-H100-80GB-HBM3", 81_920) for ordinal in range(8)
            ),
            resource_version="1",
        )
    return Recutting(stage)


def stranger(name: str = "notebook", node: str = "n1") -> PodReport:
    return PodReport(
        namespace="lab",
        name=name,
        uid=name,
        resource_version="1",
        phase=PodPhase.RUNNING,
        node=node,
        resources=(("nvidia.com/gpu", 1),),
    )
