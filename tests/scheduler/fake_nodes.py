"""The nodes of a cluster in memory, where they are cut anew: a test says what the MIG manager has
come to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Never

from clusters.autoscaling import (
    Autoscaling,
    NodeRequest,
    NodeRequestReport,
    PlaceholderReport,
    PlaceholderRequest,
)
from clusters.port import ClusterError, DeviceReport, Fault, Listing, MigConfigs, NodeReport


@dataclass
class FakeNodes:
    """`ways` is the config map, None where there is none."""

    nodes: dict[str, NodeReport] = field(default_factory=dict)
    ways: dict[str, list[dict[str, int]]] | None = field(default_factory=dict)
    placeholders: dict[str, PlaceholderReport] = field(default_factory=dict)

    # --- the port ---

    def list_nodes(self) -> Listing[NodeReport]:
        return Listing(tuple(self.nodes.values()), self._version())

    def read_autoscaling(self) -> Autoscaling | None:
        return None

    def list_placeholders(self) -> tuple[PlaceholderReport, ...]:
        return tuple(self.placeholders.values())

    def create_placeholder(self, *, request: PlaceholderRequest) -> None:
        made = PlaceholderReport(request.name, f"uid-{request.name}", request.ask)
        self.placeholders.setdefault(request.name, made)

    def delete_placeholder(self, *, found: PlaceholderReport) -> None:
        self.placeholders.pop(found.name, None)

    def list_node_requests(self) -> tuple[NodeRequestReport, ...]:
        return ()

    def create_node_request(self, *, request: NodeRequest) -> Never:
        raise NotImplementedError

    def delete_node_request(self, *, found: NodeRequestReport) -> Never:
        raise NotImplementedError

    def start_exposure_probe(self, *, hostname: str, tolerates: str, image: str) -> Never:
        raise NotImplementedError

    def read_exposure_probe(self) -> None:
        return None

    def end_exposure_probe(self, *, uid: str) -> Never:
        raise NotImplementedError

    def read_events(self, *, namespace: str, uid: str) -> Never:
        raise NotImplementedError

    def read_log(self, *, namespace: str, name: str, uid: str) -> Never:
        raise NotImplementedError

    def read_node(self, *, name: str) -> NodeReport | None:
        self._begin("read node", name)
        return self.nodes.get(name)

    def write_mig_config(
        self, *, config: str, cuts: Sequence[Mapping[str, int]], keep: Collection[str]
    ) -> MigConfigs:
        self._begin("write config", config)
        if self.ways is None:
            raise ClusterError(Fault.NOT_FOUND, "There is no config map.")
        asked = [dict(cut) for cut in cuts]
        wrote = self.ways.get(config) != asked
        kept = {name: way for name, way in self.ways.items() if name in keep}
        self.ways = kept | {config: asked}
        return MigConfigs(frozenset(self.ways), wrote)

    def cordon(self, *, node: NodeReport, recut: str) -> None:
        self._patch("cordon", node, cordoned=True, schedulable=False, recut=recut)

    def uncordon(self, *, node: NodeReport) -> None:
        self._patch("uncordon", node, cordoned=False, schedulable=True, recut="")

    def cut(self, *, node: NodeReport, config: str) -> None:
        self._patch("cut", node, mig_config=config, mig_state="")

    # --- for tests ---

    def says(self, name: str, state: str, *cuts: Mapping[str, int]) -> NodeReport:
        """What the MIG manager tells, and, where there are `cuts`, what devices it has then."""
        node = self.nodes[name]
        if not cuts:
            return self.node_becomes(name, mig_state=state)
        counts: dict[str, int] = {}
        for cut in cuts:
            for profile, count in cut.items():
                counts[profile] = counts.get(profile, 0) + count
        one = node.devices[0]
        modes = sorted(("mig-static" if cut else "whole") for cut in cuts)
        devices = tuple(
            DeviceReport(ordinal, one.model, one.memory_mib, mode)
            for ordinal, mode in enumerate(modes)
        )
        return self.node_becomes(name, mig_state=state, mig_counts=counts, devices=devices)

    def node_becomes(self, name: str, **fields: object) -> NodeReport:
        fields["resource_version"] = self._version()
        self.nodes[name] = replace(self.nodes[name], **fields)  # type: ignore[arg-type]  # a report's fields
        return self.nodes[name]

    def _patch(self, verb: str, node: NodeReport, **fields: object) -> None:
        self._begin(verb, node.name)
        there = self.nodes.get(node.name)
        if there is None:
            raise ClusterError(Fault.NOT_FOUND, "no such node")
        if (there.uid, there.resource_version) != (node.uid, node.resource_version):
            raise ClusterError(Fault.CONFLICT, "modified")
        self.node_becomes(node.name, **fields)

    def _begin(self, verb: str, name: str) -> None:
        raise NotImplementedError

    def _version(self) -> str:
        raise NotImplementedError
