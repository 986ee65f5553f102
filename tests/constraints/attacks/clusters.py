"""Attacks on what hardware exists."""

from functools import partial

from clusters.models import (
    Cluster,
    ClusterCredential,
    ClusterProbe,
    Device,
    DeviceSlice,
    Exposure,
    Flavor,
    FlavorKind,
    FlavorPart,
    ForeignSpan,
    HardwareQueue,
    Isolation,
    Node,
)
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import Sql, Statement, change, copy, update
from tests.constraints.rows import NOON, make

MIG = {"kind": FlavorKind.MIG, "profile": "1g.10gb"}
CPU = {"kind": FlavorKind.CPU, "model": ""}
MODEL = {"kind": FlavorKind.MODEL, "name": "h100.sevenths"}
SHARE = {"kind": FlavorKind.SHARE, "isolation": Isolation.NONE}


def _slice_returns() -> Statement:
    gone = make(DeviceSlice, gone_at=NOON)
    make(DeviceSlice, device=gone.device)
    return update(gone, gone_at=None)


def _held(**columns: object) -> Statement:
    """A pool that is held, with one thing wrong."""
    held = {
        "queue_state": "held",
        "queue_note": "New racks.",
        "queue_changed_at": NOON,
        "queue_changed_by": "oz",
    }
    return update(make(HardwareQueue), **held | columns)


CLUSTERS = (
    Attack("cluster_state_known", "a cluster is haunted", change(Cluster, state="haunted")),
    Attack("clusters_cluster_name_key", "two clusters have one name", copy(Cluster)),
    negative("clusters_cluster_inventory_rev_check", Cluster, "inventory_rev"),
    negative("clusters_cluster_foreign_requests_count_check", Cluster, "foreign_requests_count"),
)

CREDENTIALS = (
    *(
        Attack("credential_is_sealed", what, change(ClusterCredential, sealed=box))
        for what, box in (
            ("a token lies open", b"token-" * 20),
            ("a box of another version", b"\x02" + bytes(200)),
            ("a box has nothing in it", b"\x01" + bytes(10)),
        )
    ),
    negative("clusters_clustercredential_version_check", ClusterCredential, "version"),
)

PROBES = (
    Attack("probe_one_at_a_time", "a cluster is probed twice at once", copy(ClusterProbe)),
    *(
        Attack("probe_ends_one_way", what, change(ClusterProbe, **columns))
        for what, columns in (
            ("a probe has a verdict before its end", {"verdict": "works"}),
            ("a probe is stopped before its end", {"stopped": "unopened"}),
            ("a probe ends without a verdict", {"ended_at": NOON}),
            ("a probe works by half", {"ended_at": NOON, "verdict": "half"}),
            ("a probe is stopped by a spell", {"ended_at": NOON, "stopped": "spell"}),
            (
                "a probe that was stopped works",
                {"ended_at": NOON, "verdict": "works", "stopped": "broken-off"},
            ),
        )
    ),
    negative("clusters_clusterprobe_credential_version_check", ClusterProbe, "credential_version"),
    negative("clusters_clusterprobe_tries_check", ClusterProbe, "tries"),
)

EXPOSURES = (
    Attack("clusters_exposure_cluster_id_key", "a cluster is exposed twice", copy(Exposure)),
    *(
        Attack("exposure_verdict_is_of_what_was_seen", what, change(Exposure, **columns))
        for what, columns in (
            ("a cluster is safe unseen", {"verdict": "safe"}),
            ("what was seen is safe", {"verdict": "safe", "seen_at": NOON, "saw": '["GPU 0"]'}),
            ("nothing is unsafe", {"verdict": "unsafe", "seen_at": NOON}),
            ("a cluster is unsafe unseen", {"verdict": "unsafe", "saw": '["GPU 0"]'}),
            ("a cluster is haunted", {"verdict": "haunted"}),
        )
    ),
    Attack(
        "exposure_under_way_is_timed", "a probe waits for ever", change(Exposure, asked_at=NOON)
    ),
    negative("clusters_exposure_credential_version_check", Exposure, "credential_version"),
)

QUEUES = (
    Attack("hardware_queue_once_a_pool", "a pool has two queues", copy(HardwareQueue)),
    Attack("hardware_queue_state_known", "a pool is ajar", partial(_held, queue_state="ajar")),
    *(
        Attack("hardware_queue_closed_by_someone", what, partial(_held, **columns))
        for what, columns in (
            ("nobody held the pool", {"queue_changed_by": ""}),
            ("the pool was held never", {"queue_changed_at": None}),
            ("nobody knows why the pool is held", {"queue_note": ""}),
        )
    ),
)

NODES = (
    Attack("node_name_once_a_cluster", "a node is listed twice", copy(Node)),
    *(
        Attack("node_amounts_not_negative", f"{column} is negative", change(Node, **{column: -1}))
        for column in ("cpu_milli", "memory_mib", "foreign_cpu_milli", "foreign_memory_mib")
    ),
    Attack(
        "node_stays",
        "a node joins another cluster",
        change(Node, cluster_id=lambda: make(Cluster).pk),
    ),
    *(
        Attack(
            "node_share_isolation_known",
            f"shares are isolated by {isolation}",
            change(Node, share_isolation=isolation),
        )
        for isolation in ("hardware", "hope")
    ),
    Attack("node_share_replicas_in_range", "a GPU has no share", change(Node, share_replicas=0)),
    Attack(
        "node_share_replicas_in_range",
        "a GPU is cut finer than a thousandth",
        change(Node, share_replicas=1001),
    ),
    negative(
        "clusters_node_share_replicas_check",
        Node,
        "share_replicas",
        "node_share_replicas_in_range",
    ),
)

DEVICES = (
    Attack(
        "device_ordinal_once_a_node",
        "two devices are the node's first",
        copy(Device, {"uuid": "GPU-1"}, uuid="GPU-2"),
    ),
    Attack(
        "device_uuid_once", "one GPU is two devices", copy(Device, {"uuid": "GPU-1"}, ordinal=2)
    ),
    Attack("device_mode_known", "a device is in no known mode", change(Device, mode="quantum")),
    Attack("device_capacity_known", "a GPU is of no capacity", change(Device, capacity="cheap")),
    Attack("device_memory_not_negative", "memory is owed", change(Device, memory_mib=-1)),
    negative("clusters_device_ordinal_check", Device, "ordinal"),
    Attack(
        "device_slices_apart",
        "two MIG instances share a memory slice",
        copy(DeviceSlice, span="[3,5)"),
    ),
    Attack(
        "device_slices_apart",
        "a vanished instance returns to a taken place",
        _slice_returns,
    ),
    Attack(
        "device_slice_on_axis",
        "an instance reaches past slice 7",
        change(DeviceSlice, span="[4,9)"),
    ),
    Attack(
        "device_slice_on_axis",
        "an instance begins before slice 0",
        change(DeviceSlice, span="[-1,4)"),
    ),
    Attack("device_slice_on_axis", "an instance is empty", change(DeviceSlice, span="empty")),
    Attack("device_slice_on_axis", "an instance has no end", change(DeviceSlice, span="[0,)")),
    Attack(
        "foreign_spans_apart",
        "foreign pods hold a part of a device twice",
        copy(ForeignSpan, span="[3,5)"),
    ),
    *(
        Attack("foreign_span_on_axis", f"foreign pods hold {span}", change(ForeignSpan, span=span))
        for span in ("[0,1001)", "[-1,4)", "empty", "[0,)")
    ),
)

FLAVORS = (
    Attack(
        "clusters_flavor_name_key",
        "two flavors have one name",
        copy(Flavor, model="another"),
    ),
    Attack("flavor_meaning_once", "one thing has two flavors", copy(Flavor, name="another")),
    Attack(
        "flavor_kind_known",
        "a flavor is of no known kind",
        change(Flavor, kind="tpu"),
    ),
    Attack(
        "flavor_kind_known",
        "a share has no known isolation",
        change(Flavor, SHARE, isolation="hope"),
    ),
    Attack(
        "flavor_capacity_of_devices",
        "a flavor is of no known capacity",
        change(Flavor, capacity="cheap"),
    ),
    Attack(
        "flavor_capacity_of_devices", "cores are spot alone", change(Flavor, CPU, capacity="spot")
    ),
    Attack("flavor_profile_for_mig_only", "MIG has no profile", change(Flavor, MIG, profile="")),
    Attack(
        "flavor_profile_for_mig_only",
        "a whole GPU has a profile",
        change(Flavor, profile="1g.10gb"),
    ),
    Attack("flavor_model_unless_cpu", "a GPU has no model", change(Flavor, model="")),
    Attack(
        "flavor_model_unless_cpu", "a CPU has a GPU's model", change(Flavor, CPU, model="H100")
    ),
    Attack(
        "flavor_share_isolation",
        "a share claims hardware isolation",
        change(Flavor, SHARE, isolation="hardware"),
    ),
    Attack(
        "flavor_name_tells_sevenths",
        "whole GPUs are read as sevenths",
        change(Flavor, name="h100.sevenths"),
    ),
    Attack(
        "flavor_name_tells_sevenths",
        "sevenths are read as whole GPUs",
        change(Flavor, MODEL, name="h100"),
    ),
    *(
        Attack(
            "flavor_part_of_a_device",
            f"a slice counts {what} of its device",
            change(FlavorPart, milli=milli),
        )
        for what, milli in (("nothing", 0), ("more than all", 7001))
    ),
    negative("clusters_flavorpart_milli_check", FlavorPart, "milli", "flavor_part_of_a_device"),
    Attack("clusters_flavorpart_part_id_key", "a flavor counts twice", copy(FlavorPart, milli=1)),
    Attack(
        "flavor_spread_whole_or_cpu", "slices are spread", change(Flavor, MIG, placing="spread")
    ),
    Attack("flavor_spread_whole_or_cpu", "pods go at random", change(Flavor, placing="random")),
    Attack(
        "flavor_share_isolation", "a whole GPU is not isolated", change(Flavor, isolation="none")
    ),
    *(
        Attack("flavor_name_plain", f"a flavor's name {what}", change(Flavor, name=name))
        for what, name in (
            ("is empty", ""),
            ("ends in a dot", "h100."),
            ("has capitals", "H100"),
            ("has a second line", Sql("E'h100\\nx'")),
            ("runs right to left", "h100\u202e"),
        )
    ),
)

ATTACKS = CLUSTERS + CREDENTIALS + PROBES + EXPOSURES + QUEUES + NODES + DEVICES + FLAVORS
