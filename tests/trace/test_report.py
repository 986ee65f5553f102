"""The report: two replays' sums compared, the table, processor time by service."""

import copy
import os
import subprocess
import sys

import pytest

from controlplane.trace import usage
from controlplane.trace.killing import VICTIMS, Killer
from controlplane.trace.report import Report, compare
from controlplane.trace.table import table
from tests.demo.running import wait_until

REPORT: Report = {
    "speed": 100000.0,
    "price": "1.0",
    "counts": {"submitted": 3, "admitted": 3, "bound": 3, "finished": 3},
    "seconds": {"submit": 0.1, "submit_to_last_bound": 0.5, "submit_to_last_release": 2.0},
    "submitted_to_bound_per_s": 6.0,
    "gpus": 20,
    "allocation": [
        {"day": 0.5, "held_milli": 10000, "running_milli": 5000},
        {"day": 1.5, "held_milli": 0, "running_milli": 0},
    ],
    "cycles": {
        "count": 1,
        **{
            name: {"p50": 1, "p99": 2, "max": 3}
            for name in ("load", "plan", "apply", "cycle", "pending", "admitted")
        },
    },
    "tenants": {
        "ls": {
            "pods": 3,
            "gpu_units": 7_200_000_000_000,
            "cpu_units": 5,
            "gpu_hours": "2.000000",
            "cost": "1.500000",
        }
    },
    "charges": 3,
    "processes": {"web": {"cpu_ms_per_workload": 1.25, "peak_mib": 100.0}},
    "kills": [],
    "problems": [],
}


def changed(**values: object) -> Report:
    report = copy.deepcopy(REPORT)
    report["tenants"]["ls"].update(values)
    return report


def test_the_same_sums_are_called_the_same() -> None:
    text, differences = compare(REPORT, REPORT)
    assert differences == []
    assert text.endswith("the same sums")


@pytest.mark.parametrize(
    ("values", "differs"),
    [
        ({"gpu_units": 7_200_000_000_001}, ["ls: GPU thousandth-us"]),
        ({"cpu_units": 6}, ["ls: core thousandth-us"]),
        ({"cost": "1.500007"}, ["ls: cost"]),
        ({"cost": "1.500006"}, []),  # six charges, each rounded to a millionth
    ],
)
def test_a_difference_is_named(values: dict[str, object], differs: list[str]) -> None:
    text, differences = compare(changed(**values), REPORT)
    assert differences == differs
    assert ("DIFFERS" in text) == bool(differs)


@pytest.mark.parametrize("price", ["", "2.0"])
def test_costs_at_other_prices_are_shown_and_not_judged(price: str) -> None:
    reference = {**changed(cost="9.000000"), "price": price}
    text, differences = compare({**REPORT, "price": price and "1.0"}, reference)
    assert differences == []
    assert "not judged" in text


def test_a_tenant_that_is_missing_differs() -> None:
    less = copy.deepcopy(REPORT)
    del less["tenants"]["ls"]
    assert compare(less, REPORT)[1] == [
        "ls: GPU thousandth-us",
        "ls: core thousandth-us",
        "ls: cost",
    ]


def test_the_table_shows_the_figures() -> None:
    text = table(REPORT)
    for part in ("3 submitted, 3 admitted, 3 bound, 3 finished", "6.0 workloads/s", "50.0%",
                 "####################--------------------", "2.00", "1.50", "web"):  # fmt: skip
        assert part in text


def test_a_run_with_kills_shows_no_processor_time_because_the_dead_take_theirs_along() -> None:
    assert "CPU ms" in table(REPORT)
    assert "CPU ms" not in table({**REPORT, "kills": ["schedule worker"]})


def test_the_processes_of_a_service_are_found_with_their_children() -> None:
    program = (
        "import subprocess, sys, time\n"
        "sum(range(10**7))\n"
        "subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    )
    command = (sys.executable, "-c", program)
    child = subprocess.Popen(command)

    def family() -> list[int]:
        return usage.families(os.getpid(), {"stand-in": command}).get("stand-in", [])

    try:
        wait_until(lambda: len(family()) == 2, "the child's child")
        found = usage.measure({"stand-in": family()})["stand-in"]
        assert family()[0] == child.pid
        assert found.cpu_s > 0
        assert 1 < found.peak_mib < 1000
    finally:
        for pid in reversed(family()):
            os.kill(pid, 9)
        child.wait()


def test_the_table_says_who_was_killed() -> None:
    kills = ["web", "schedule worker", "beat", "web"]
    assert "killed: 1 x beat, 1 x schedule worker, 2 x web\n" in table({**REPORT, "kills": kills})
    assert "killed" not in table(REPORT)


def test_the_killer_strikes_as_binding_goes_on_and_each_service_before_any_again() -> None:
    killed: list[str] = []
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]

    def families() -> dict[str, list[int]]:
        started = subprocess.Popen(sleeper)
        running.append(started)
        return {name: [started.pid] for name in (*VICTIMS, "postgres", "openb")}

    running: list[subprocess.Popen[bytes]] = []
    killer = Killer(kills=12, seed=3, families=families)
    assert killer.look(0.0) == ""
    for percent in range(101):
        if said := killer.look(percent / 100):
            killed.append(said)
    assert killer.done == killed
    assert [process.wait() for process in running] == [-9] * 12
    everybody = sorted(["beat", "dispatch worker", "periodic worker", "schedule worker", "watcher",
                        "web"])  # fmt: skip
    assert sorted(killed[:6]) == sorted(killed[6:]) == everybody


def test_the_killer_waits_for_one_that_is_being_started_again() -> None:
    killer = Killer(kills=1, seed=3, families=dict)
    assert [killer.look(part) for part in (0.9, 1.0)] == ["", ""]
    assert killer.done == []
