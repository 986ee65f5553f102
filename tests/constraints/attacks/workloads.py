"""Attacks on what users submit, its timeline and its estimates."""

from scheduler.core.lifecycle import TERMINAL
from scheduler.models import Estimate, PodSet, PodSetFlavor, Workload, WorkloadEvent
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import Statement, change, copy, empty, insert_like, remove
from tests.constraints.rows import NOON, make

ENDED = {"ended_at": NOON}


def _second_choice_of_one_rank() -> Statement:
    first = make(PodSetFlavor)
    other = make(PodSetFlavor)
    return insert_like(first, flavor_id=other.flavor_id)


WORKLOADS = (
    Attack(
        "workload_state_known", "a workload is asleep", change(Workload, state="ASLEEP", version=2)
    ),
    *(
        Attack(
            "workload_ended_iff_terminal",
            f"a workload is {state} and has not ended",
            change(Workload, state=str(state), version=2),
        )
        for state in sorted(TERMINAL)
    ),
    Attack(
        "workload_ended_iff_terminal",
        "a pending workload has ended",
        change(Workload, ended_at=NOON),
    ),
    *(
        Attack(
            "workload_end_is_final",
            f"a workload is {state} and waits again",
            change(Workload, {"state": state, **ENDED}, state="PENDING", ended_at=None, version=2),
        )
        for state in sorted(TERMINAL)
    ),
    Attack(
        "workload_end_is_final",
        "a failure becomes a success",
        change(Workload, {"state": "FAILED", **ENDED}, state="SUCCEEDED", version=2),
    ),
    Attack(
        "workload_version_grows",
        "a workload is what it was before",
        change(Workload, {"version": 2}, version=1),
    ),
    Attack(
        "workload_version_grows",
        "a workload moves and its version does not",
        change(Workload, state="ADMITTED"),
    ),
    Attack(
        "workload_required_level_named",
        "all pods have to be in one of nothing",
        change(Workload, topology_required=True),
    ),
    Attack("workload_limit_positive", "a run has no time", change(Workload, run_time_limit_s=0)),
    negative(
        "scheduler_workload_run_time_limit_s_check",
        Workload,
        "run_time_limit_s",
        "workload_limit_positive",
    ),
    Attack("workload_turn_whole", "its turn is nobody's", change(Workload, turn_at=NOON)),
    Attack("workload_priority_in_range", "it goes before all", change(Workload, priority=1001)),
    Attack("workload_priority_in_range", "it goes after all", change(Workload, priority=-1001)),
    negative("scheduler_workload_version_check", Workload, "version", "workload_version_grows"),
    negative("scheduler_workload_failures_check", Workload, "failures"),
    negative("scheduler_workload_node_losses_check", Workload, "node_losses"),
    *(
        Attack("workload_retries_known", what, change(Workload, **columns))
        for what, columns in (
            ("bad luck is tried again", {"retry_on": ["bad-luck"]}),
            ("it is tried again for ever", {"retry_limit": 101}),
            ("every exit code is listed", {"retry_exit_codes": list(range(1, 34))}),
        )
    ),
    negative("scheduler_workload_retry_limit_check", Workload, "retry_limit"),
    *(
        Attack("workload_grace_in_range", what, change(Workload, **columns))
        for what, columns in (
            ("its pods have no time to end", {"grace_s": 0}),
            ("its pods never end", {"grace_s": 3601}),
            ("it never has to go", {"notice_s": 3601}),
        )
    ),
    negative("scheduler_workload_grace_s_check", Workload, "grace_s", "workload_grace_in_range"),
    negative("scheduler_workload_notice_s_check", Workload, "notice_s"),
    *(
        Attack("workload_cluster_loss_in_range", what, change(Workload, cluster_loss_requeue_s=s))
        for what, s in (
            ("it is started elsewhere at the first silence", 599),
            ("it is started elsewhere when nobody remembers it", 604_801),
        )
    ),
    negative(
        "scheduler_workload_cluster_loss_requeue_s_check",
        Workload,
        "cluster_loss_requeue_s",
        "workload_cluster_loss_in_range",
    ),
    Attack(
        "scheduler_workload_clust_workload_id_cluster_id_a3b364ea_uniq",
        "a workload accepts a cluster twice",
        copy(Workload.clusters.through),
    ),
    Attack("event_append_only", "the timeline is rewritten", change(WorkloadEvent, message="x")),
    Attack("event_append_only", "the timeline has a hole", remove(WorkloadEvent)),
    Attack("event_never_emptied", "no workload has a timeline", empty(WorkloadEvent)),
)

POD_SETS = (
    Attack(
        "pod_set_stays",
        "a pod set joins another workload",
        change(PodSet, workload_id=lambda: make(Workload).pk),
    ),
    Attack("pod_set_position_once", "two pod sets are the first", copy(PodSet, name="b")),
    Attack("pod_set_name_once", "two pod sets have one name", copy(PodSet, position=9)),
    Attack("pod_set_counts_in_range", "there is no pod", change(PodSet, count=0, min_count=0)),
    Attack("pod_set_counts_in_range", "there are too many pods", change(PodSet, count=4097)),
    Attack("pod_set_counts_in_range", "it starts with no pod", change(PodSet, min_count=0)),
    Attack(
        "pod_set_counts_in_range", "it needs more pods than it has", change(PodSet, min_count=2)
    ),
    *(
        Attack(
            "pod_set_cpu_memory_in_range",
            f"{column} is {amount}",
            change(PodSet, **{column: amount}),
        )
        for column, amount in (
            ("cpu_milli", 0),
            ("cpu_milli", 4_096_001),
            ("memory_mib", 0),
            ("memory_mib", 64 * 1024 * 1024 + 1),
        )
    ),
    Attack("pod_set_gpus_in_range", "a pod has 65 GPUs", change(PodSet, gpu_count=65)),
    Attack("pod_set_gpus_in_range", "a share is of nothing", change(PodSet, gpu_milli=0)),
    Attack("pod_set_gpus_in_range", "a share is over 1", change(PodSet, gpu_milli=1001)),
    Attack(
        "pod_set_gpus_in_range",
        "a share is of two GPUs",
        change(PodSet, gpu_milli=500, gpu_count=2),
    ),
    Attack(
        "pod_set_wish_of_whole_devices",
        "a maker is wished of no device",
        change(PodSet, vendors=["nvidia"]),
    ),
    Attack(
        "pod_set_wish_of_whole_devices",
        "half a device of a size is wished",
        change(PodSet, least_memory_mib=1, gpu_milli=500),
    ),
    Attack(
        "pod_set_wish_of_whole_devices",
        "less than no memory is wished",
        change(PodSet, least_memory_mib=-1),
    ),
    Attack(
        "pod_set_level_named",
        "it has to be in one of nothing",
        change(PodSet, topology_required=True),
    ),
    Attack(
        "pod_set_level_named",
        "its groups are in one of nothing",
        change(PodSet, topology_group_size=1),
    ),
    Attack(
        "pod_set_in_whole_groups",
        "a pod is in half a group",
        change(PodSet, topology_level="rack", topology_group_size=2),
    ),
    Attack(
        "pod_set_in_whole_groups",
        "part of a group starts",
        change(PodSet, topology_level="rack", topology_group_size=2, count=2),
    ),
    negative(
        "scheduler_podset_topology_group_size_check",
        PodSet,
        "topology_group_size",
        "pod_set_level_named",
        "pod_set_in_whole_groups",
    ),
    negative("scheduler_podset_count_check", PodSet, "count", "pod_set_counts_in_range"),
    negative("scheduler_podset_min_count_check", PodSet, "min_count", "pod_set_counts_in_range"),
    negative("scheduler_podset_gpu_count_check", PodSet, "gpu_count"),
    negative("scheduler_podset_gpu_milli_check", PodSet, "gpu_milli", "pod_set_gpus_in_range"),
    negative("scheduler_podset_position_check", PodSet, "position"),
    Attack("accepted_flavor_once", "a flavor is accepted twice", copy(PodSetFlavor, position=9)),
    Attack(
        "accepted_position_once", "two flavors are the first choice", _second_choice_of_one_rank
    ),
    negative("scheduler_podsetflavor_position_check", PodSetFlavor, "position"),
)

ESTIMATES = (
    Attack("estimate_once_a_moment", "a moment has two forecasts", copy(Estimate)),
    Attack(
        "estimate_in_order",
        "the late forecast is the earlier one",
        change(Estimate, p50_s=60, p90_s=59),
    ),
    Attack("estimate_in_order", "a late forecast stands alone", change(Estimate, p90_s=60)),
    negative("scheduler_estimate_p50_s_check", Estimate, "p50_s"),
    Attack(
        "scheduler_estimate_p90_s_check",
        "p90_s is negative",
        change(Estimate, p90_s=-1),
        behind=("estimate_in_order",),
    ),
    negative("scheduler_estimate_passes_check", Estimate, "passes"),
)

ATTACKS = WORKLOADS + POD_SETS + ESTIMATES
