"""The names Berth writes into a cluster: labels, annotation, gate, resources. No logic, no I/O."""

from dataclasses import dataclass, field

from clusters.port import NVIDIA_GPU

HOSTNAME = "kubernetes.io/hostname"
GPU = NVIDIA_GPU
GPU_SHARED = "nvidia.com/gpu.shared"
AMD_GPU = "amd.com/gpu"
INTEL_GPUS = ("gpu.intel.com/xe", "gpu.intel.com/i915")  # by driver, the newer first
DEVICES = ("nvidia.com/", "amd.com/", "gpu.intel.com/")
MIG = "nvidia.com/mig-"  # and the profile, with "." for its "+"


@dataclass(frozen=True, slots=True)
class Names:
    """What one installation of Berth, under one prefix, calls its own."""

    prefix: str
    installation: str
    gate: str = field(init=False)
    label_installation: str = field(init=False)
    label_workload: str = field(init=False)
    label_attempt: str = field(init=False)
    label_rank: str = field(init=False)
    label_geometry: str = field(init=False)
    label_caught: str = field(init=False)
    label_queue: str = field(init=False)
    label_priority: str = field(init=False)
    annotation_creator: str = field(init=False)
    annotation_flavors: str = field(init=False)
    annotation_gang: str = field(init=False)
    annotation_gang_size: str = field(init=False)
    annotation_hash: str = field(init=False)
    annotation_notice: str = field(init=False)
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
            ("annotation_creator", "created-by"),
            ("annotation_flavors", "flavors"),
            ("annotation_gang", "gang"),
            ("annotation_gang_size", "gang-size"),
            ("annotation_hash", "spec-hash"),
            ("annotation_notice", "notice-until"),
        ):
            object.__setattr__(self, attribute, f"{self.prefix}/{suffix}")
        object.__setattr__(self, "field_manager", f"berth-{self.installation}"[:128])

    @property
    def own(self) -> str:
        """Of what is Berth's own in a cluster: role, policy, account. Of each installation it is
        another."""
        return "berth" if self.installation == "berth" else f"berth-{self.installation}"

    @property
    def home(self) -> str:
        """Berth's own namespace, made as a project's is; no project is given one that ends so."""
        return f"{self.own}-system"
