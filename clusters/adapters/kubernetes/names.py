"""The names Berth writes into a cluster: labels, annotations, gate, resources. No logic."""

from dataclasses import dataclass, field

from clusters.port import NVIDIA_GPU
from clusters.published import OF_CLASS

HOSTNAME = "kubernetes.io/hostname"
QUEUED = "cloud.google.com/gke-queued"
"""The taint that GKE gives nodes that come by ProvisioningRequests, and by nothing else."""
GPU = NVIDIA_GPU
GPU_SHARED = "nvidia.com/gpu.shared"
AMD_GPU = "amd.com/gpu"
INTEL_GPUS = ("gpu.intel.com/xe", "gpu.intel.com/i915")  # by driver, the newer first
DEVICES = ("nvidia.com/", "amd.com/", "gpu.intel.com/", OF_CLASS)
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
"""By which a container, or its image, may see devices that it never asked for (T7)."""
MIG = "nvidia.com/mig-"  # and the profile, with "." for its "+"
MIG_CONFIG = "nvidia.com/mig.config"  # how its MIG manager is to cut a node
MIG_STATE = "nvidia.com/mig.config.state"  # how far that is


@dataclass(frozen=True, slots=True)
class Names:
    """What one installation of Berth, under one prefix, calls its own. `mig_config` is the config
    map, as namespace/name, from which the MIG managers of a cluster are told."""

    prefix: str
    installation: str
    mig_config: str = "gpu-operator/berth-mig-config"
    gate: str = field(init=False)
    label_installation: str = field(init=False)
    label_workload: str = field(init=False)
    label_attempt: str = field(init=False)
    label_rank: str = field(init=False)
    label_geometry: str = field(init=False)
    label_caught: str = field(init=False)
    label_queue: str = field(init=False)
    label_priority: str = field(init=False)
    label_ask: str = field(init=False)
    label_node_pool: str = field(init=False)
    annotation_creator: str = field(init=False)
    annotation_flavors: str = field(init=False)
    annotation_gang: str = field(init=False)
    annotation_gang_size: str = field(init=False)
    annotation_hash: str = field(init=False)
    annotation_notice: str = field(init=False)
    annotation_recut: str = field(init=False)
    field_manager: str = field(init=False)

    def __post_init__(self) -> None:
        for attribute, suffix in (
            ("gate", "placed"),
            ("label_installation", "installation"),
            ("label_workload", "workload"),
            ("label_attempt", "attempt"),
            ("label_rank", "rank"),
            ("label_geometry", "mig-geometry"),
            ("label_caught", "caught"),
            ("label_queue", "queue"),
            ("label_priority", "priority"),
            ("label_ask", "node-ask"),
            ("label_node_pool", "node-pool"),
            ("annotation_creator", "created-by"),
            ("annotation_flavors", "flavors"),
            ("annotation_gang", "gang"),
            ("annotation_gang_size", "gang-size"),
            ("annotation_hash", "spec-hash"),
            ("annotation_notice", "notice-until"),
            ("annotation_recut", "recut"),
        ):
            object.__setattr__(self, attribute, f"{self.prefix}/{suffix}")
        object.__setattr__(self, "field_manager", f"berth-{self.installation}"[:128])

    @property
    def own(self) -> str:
        """Of what is Berth's own in a cluster: role, policy, account. Of each installation it is
        another."""
        return "berth" if self.installation == "berth" else f"berth-{self.installation}"

    @property
    def workload_account(self) -> str:
        """As whom a project's pods run: somebody without any right."""
        return f"{self.own}-workload"

    def priority_class(self, priority: str) -> str:
        """Of Berth's pods of that priority, and of no others in its namespaces."""
        return f"{self.own}-{priority}"

    @property
    def placeholder(self) -> str:
        """The priority class of pods that stand for work, so that nodes are made."""
        return f"{self.own}-placeholder"

    @property
    def home(self) -> str:
        """Berth's own namespace, made as a project's is; no project is given one that ends so."""
        return f"{self.own}-system"
