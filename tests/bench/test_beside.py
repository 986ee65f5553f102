"""What the steps beside a running Berth share: they give up in time, and know whose a cost is."""

import pytest

from controlplane.trace.usage import Usage
from tests.bench import beside


def test_what_does_not_come_true_in_time_is_said() -> None:
    with pytest.raises(SystemExit, match="no nodes within 0 s"):
        beside.until(lambda: False, "no nodes", within_s=0)


def test_the_simulator_is_no_cost_of_ours() -> None:
    before = {name: Usage(1.0, 0.0) for name in ("web", "postgres", "openb")}
    after = {"web": Usage(2.0, 0.0), "postgres": Usage(4.0, 0.0), "openb": Usage(8.0, 0.0)}
    found = beside.cpu(before, after, simulator="openb", workloads=100)
    assert found == {
        "cpu_ms": (40.0, "ms"),
        "cpu_ms_web": (10.0, "ms"),
        "cpu_ms_postgres": (30.0, "ms"),
        "cpu_ms_simulator": (70.0, "ms"),
    }
