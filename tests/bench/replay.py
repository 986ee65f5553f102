"""The openb replay's figures: `berth import-trace` on the whole trace."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.report import ROOT, Figures, plain_environ

TRACE = ROOT.parent / "shared" / "traces" / "openb"


def take(figures: Figures, trace: Path = TRACE) -> None:
    """Replay it and add what came of it. Raises SystemExit when the replay found a fault."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-c", "from controlplane.cli.main import main; main()"]
        command += ["import-trace", str(trace), "--json", str(path)]
        done = subprocess.run(command, cwd=ROOT, env=plain_environ())
        if done.returncode:
            raise SystemExit("bench-path: the replay went wrong; its lines above say how.")
        report = json.loads(path.read_text())
    figures.add("openb_workloads", report["counts"]["finished"], "workloads")
    figures.add("openb_submitted_to_bound_per_s", report["submitted_to_bound_per_s"], "1/s")
    figures.add("openb_submit_s", report["seconds"]["submit"], "s")
    figures.add("openb_last_bound_s", report["seconds"]["submit_to_last_bound"], "s")
    cycles = report["cycles"]
    figures.add("cycles", cycles["count"], "cycles")
    for part in ("load", "plan", "apply"):
        for which in ("p50", "p99"):
            figures.add(f"cycle_{part}_{which}_ms", cycles[part][which], "ms")
    for which in ("p50", "p99"):
        figures.add(f"cycle_{which}_ms", cycles["cycle"][which], "ms")
    processes = report["processes"]
    total = sum(row["cpu_ms_per_workload"] for row in processes.values())
    figures.add("openb_cpu_ms_per_workload", total, "ms")
    for name, row in processes.items():
        figures.add(f"openb_cpu_ms_per_workload_{_plain(name)}", row["cpu_ms_per_workload"], "ms")
    figures.add("openb_peak_mib", max(row["peak_mib"] for row in processes.values()), "MiB")
    for name, row in processes.items():
        figures.add(f"openb_peak_mib_{_plain(name)}", row["peak_mib"], "MiB")


def _plain(process: str) -> str:
    """The simulator is called after its cluster."""
    return "simulator" if process == "openb" else process
