"""A pod of the trace as a submission: what it asks for, which models it accepts, in what order."""

from itertools import groupby
from pathlib import Path

import pytest

from controlplane.trace import reading
from controlplane.trace.fleet import TENANTS, Choice, Fleet
from controlplane.trace.reading import BadTrace, NodeRow, PodRow
from controlplane.trace.submission import batches, body
from scheduler.web.serializers import parse
from tests.trace import files

NODES = [
    NodeRow("a", 96000, 393216, 8, "G2"),
    NodeRow("b", 96000, 393216, 8, "G2"),
    NodeRow("c", 64000, 262144, 2, "T4"),
    NodeRow("d", 64000, 262144, 0, ""),
]
FLEET = Fleet(NODES)
CHOICE = Choice(FLEET)


def pod(
    gpus: int = 1, gpu_milli: int = 1000, *, models: tuple[str, ...] = (), **changes: object
) -> PodRow:
    fields: dict[str, object] = {
        "name": "pod-1", "cpu_milli": 4000, "memory_mib": 8192, "qos": "LS", "arrived_s": 0,
        "runs_s": 60,
    }  # fmt: skip
    return PodRow(gpus=gpus, gpu_milli=gpu_milli, models=models, **{**fields, **changes})  # type: ignore[arg-type]  # any of its fields


def test_a_pod_is_a_submission_that_the_api_takes(tmp_path: Path) -> None:
    nodes = reading.nodes(files.nodes(tmp_path / "n.csv"))
    choice = Choice(Fleet(nodes))
    for row in reading.pods(files.pods(tmp_path / "p.csv")):
        spec = parse(body(row, choice))
        (pods,) = spec.pod_sets
        assert (pods.count, pods.gpu_count, pods.command) == (
            1,
            row.gpus,
            ("sleep", str(row.runs_s)),
        )
        assert spec.preemptible


def test_a_run_time_may_be_replaced() -> None:
    assert body(pod(), CHOICE, runs_s=5)["pod_sets"][0]["command"] == ["sleep", "5"]


def test_whole_gpus_shares_and_cores_have_their_flavors() -> None:
    assert set(CHOICE.flavors(pod(1, 1000))) == {"g2", "t4"}
    assert set(CHOICE.flavors(pod(1, 460))) == {"g2.share", "t4.share"}
    assert CHOICE.flavors(pod(0, 0)) == ("cpu",)


def test_models_that_could_never_hold_the_pod_are_left_out() -> None:
    assert CHOICE.flavors(pod(8)) == ("g2",)
    assert CHOICE.flavors(pod(1, cpu_milli=90000)) == ("g2",)
    with pytest.raises(BadTrace, match=r"No node could ever hold pod-1\."):
        CHOICE.flavors(pod(9))
    with pytest.raises(BadTrace, match=r"No node could ever hold pod-1\."):
        CHOICE.flavors(pod(8, models=("T4",)))


def test_the_order_of_the_trace_is_kept_where_it_names_models() -> None:
    assert CHOICE.flavors(pod(models=("T4", "G2"))) == ("t4", "g2")
    assert CHOICE.flavors(pod(models=("G2", "T4"))) == ("g2", "t4")


def test_free_pods_begin_with_models_in_proportion_to_their_gpus() -> None:
    first = [CHOICE.flavors(pod(name=f"pod-{index}"))[0] for index in range(1800)]
    assert 1500 < first.count("g2") < 1700  # of 18 GPUs 16 are G2
    assert first[7] == CHOICE.flavors(pod(name="pod-7"))[0]


def test_a_model_without_a_price_is_refused() -> None:
    with pytest.raises(BadTrace, match="the model 'H900', which has no price"):
        Fleet([NodeRow("a", 1000, 1000, 1, "H900")]).gpus()


def test_nominal_quotas_share_out_all_there_is(tmp_path: Path) -> None:
    nominal = FLEET.quotas(reading.pods(files.pods(tmp_path / "p.csv")))
    for flavor, total in (("g2", 16000), ("g2.share", 16000), ("t4", 2000), ("cpu", 320000)):
        parts = [nominal[qos, flavor] for qos in TENANTS]
        assert sum(parts) == total
        assert min(parts) >= 0
    assert nominal["LS", "g2"] > nominal["Guaranteed", "g2"]


def test_a_fleet_is_shared_out_also_when_nobody_asks_for_it() -> None:
    nominal = FLEET.quotas([pod(0, 0)])
    assert sum(nominal[qos, "t4"] for qos in TENANTS) == 2000


def test_batches_keep_the_order_of_arrival_within_a_project_and_between_windows() -> None:
    pods = [
        pod(name=f"pod-{index:02}", qos=("LS", "BE")[index % 2], arrived_s=index)
        for index in range(10)
    ]
    made = list(batches(pods, size=4))
    assert [(qos, [row.arrived_s for row in rows]) for qos, rows in made] == [
        ("LS", [0, 2]), ("BE", [1, 3]), ("LS", [4, 6]), ("BE", [5, 7]), ("LS", [8]), ("BE", [9]),
    ]  # fmt: skip
    for _, group in groupby(sorted(made, key=lambda item: item[0]), key=lambda item: item[0]):
        arrivals = [row.arrived_s for _, rows in group for row in rows]
        assert arrivals == sorted(arrivals)
