"""What a user would do, through the REST API only: submit, watch it run, read what it cost.

What must not live here: any look behind the API, at rows or at a cluster.
"""

import http.client
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

_STARTS_WITHIN_S = 60.0
_ENDS_WITHIN_S = 120.0
_CHARGED_WITHIN_S = 120.0
_POLL_S = 0.1
_RUNS_S = 5
_STARTED = ("RUNNING", "SUCCEEDED")
_OVER = ("SUCCEEDED", "FAILED", "CANCELLED")

Json = dict[str, Any]  # Any: JSON of the API


class Failed(Exception):
    """The smoke test's verdict, as a sentence."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One workload to submit: who, to which project, what, on how many GPUs."""

    user: str
    project: str
    name: str
    pods: int
    gpus_per_pod: int
    flavor: str

    @property
    def unit_seconds(self) -> int:
        """What it holds at least, in whole units of the flavor times seconds."""
        return self.pods * self.gpus_per_pod * _RUNS_S

    def body(self, project: str) -> Json:
        return {
            "project": project,
            "name": self.name,
            "priority_class": "normal",
            "preemptible": False,
            "run_time_limit_s": 600,
            "clusters": [],
            "pod_sets": [
                {
                    "name": "main",
                    "count": self.pods,
                    "min_count": self.pods,
                    "cpu_milli": 1000,
                    "memory_mib": 1024,
                    "gpu_count": self.gpus_per_pod,
                    "gpu_milli": 1000,
                    "flavors": [self.flavor],
                    "image": "busybox",
                    "command": ["sleep", str(_RUNS_S)],
                    "args": [],
                    "env": {},
                }
            ],
        }


SUBMISSIONS = (
    Submission("ben", "segmentation", "smoke-mig", 1, 1, "a100-80gb.1g.10gb"),
    Submission("cleo", "pretraining", "smoke-gang", 2, 4, "h100-80gb"),
)


class Api:
    """The API as one user with a token."""

    def __init__(self, url: str, token: str) -> None:
        self._host = urlsplit(url).netloc
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def get(self, path: str, **query: str) -> Json:
        return self._ask("GET", f"{path}?{urlencode(query)}" if query else path, None, expect=200)

    def post(self, path: str, body: Json) -> Json:
        return self._ask("POST", path, json.dumps(body), expect=201)

    def every(self, path: str, **query: str) -> list[Json]:
        """All rows of a list, following its cursors."""
        rows: list[Json] = []
        page = self.get(path, **query)
        while True:
            rows += page["items"]
            if not page["next"]:
                return rows
            page = self.get(path, **query, cursor=page["next"])

    def _ask(self, method: str, path: str, body: str | None, *, expect: int) -> Json:
        connection = http.client.HTTPConnection(self._host, timeout=30)
        try:
            connection.request(method, f"/api/v1/{path}", body, self._headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status != expect:
            raise Failed(f"{method} {path} answered {answer.status}: {text[:500]}")
        found: Json = json.loads(text)
        return found


@dataclass(slots=True)
class Run:
    """One submission and what was seen of it."""

    wanted: Submission
    api: Api
    id: str
    submitted_at: float  # monotonic
    running_s: float = 0.0
    over_s: float = 0.0
    held: Decimal = Decimal(0)  # whole units of the flavor times seconds
    charged: Decimal = Decimal(0)
    currency: str = ""

    def state(self) -> str:
        return str(self.api.get(f"workloads/{self.id}")["state"])

    def nodes(self) -> str:
        """Where it ran."""
        placements = self.api.get(f"workloads/{self.id}")["placements"]
        return ", ".join(sorted({f"{row['cluster']}/{row['node']}" for row in placements}))

    def read_spend(self) -> None:
        """Fill in what was held and charged so far."""
        self.held = Decimal(0)
        for row in self.api.every("usage", workload=self.id):
            length = datetime.fromisoformat(row["end"]) - datetime.fromisoformat(row["start"])
            self.held += row["amount_milli"] * Decimal(str(length.total_seconds())) / 1000
        rows = self.api.every("charges", workload=self.id)
        self.charged = sum((Decimal(row["amount"]) for row in rows), Decimal(0))
        self.currency = rows[0]["currency"] if rows else ""


def submit(url: str, tokens: Mapping[str, str], wanted: Submission) -> Run:
    """Submit to the user's project of that name."""
    api = Api(url, tokens[wanted.user])
    projects = {row["slug"]: row["id"] for row in api.every("projects")}
    if wanted.project not in projects:
        raise Failed(f"{wanted.user} does not see the project {wanted.project}")
    answer = api.post("workloads", wanted.body(projects[wanted.project]))
    return Run(wanted, api, str(answer["id"]), time.monotonic())


def await_devices(api: Api) -> None:
    """Wait until each cluster's devices are known; before that nothing can be asked for."""
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while waiting := [row["name"] for row in api.every("clusters") if not row["device_count"]]:
        if time.monotonic() > deadline:
            raise Failed(f"no devices within {_STARTS_WITHIN_S:.0f} s in: {', '.join(waiting)}")
        time.sleep(_POLL_S)


def follow(runs: Sequence[Run]) -> None:
    """Wait until each run has started, then ended, then was charged for all it held."""

    def started(run: Run) -> bool:
        state = run.state()
        if state in _STARTED:
            run.running_s = time.monotonic() - run.submitted_at
        elif state in _OVER:
            raise Failed(f"{run.wanted.name} is {state} and never ran")
        return state in _STARTED

    def ended(run: Run) -> bool:
        state = run.state()
        if state in _OVER and state != "SUCCEEDED":
            raise Failed(f"{run.wanted.name} ended as {state}")
        run.over_s = time.monotonic() - run.submitted_at
        return state == "SUCCEEDED"

    def charged(run: Run) -> bool:
        run.read_spend()
        return run.held >= run.wanted.unit_seconds and run.charged > 0

    _each(runs, started, "start", _STARTS_WITHIN_S)
    _each(runs, ended, "end", _ENDS_WITHIN_S)
    _each(runs, charged, "be charged", _CHARGED_WITHIN_S)


def _each(runs: Sequence[Run], done: Callable[[Run], bool], what: str, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    waiting = list(runs)
    while waiting := [run for run in waiting if not done(run)]:
        if time.monotonic() > deadline:
            names = ", ".join(f"{run.wanted.name} ({run.state()})" for run in waiting)
            raise Failed(f"did not {what} within {within_s:.0f} s: {names}")
        time.sleep(_POLL_S)


def check_prices(runs: Sequence[Run]) -> None:
    """Raise Failed unless each charge is what was held, at the price list's price."""
    for run in runs:
        rates = run.api.every("rates", flavor=run.wanted.flavor)
        due = run.held / 3600 * Decimal(rates[0]["price_per_hour"])
        if abs(due - run.charged) > Decimal("0.0001"):
            raise Failed(f"{run.wanted.name} was charged {run.charged}, and {due:.6f} is due")


def figures(runs: Sequence[Run]) -> str:
    """The table to print."""
    heads = (
        "workload",
        "user",
        "GPUs",
        "flavor",
        "running after",
        "over after",
        "GPU-s",
        "charge",
    )
    rows = [(*heads, "where")]
    rows += [
        (
            run.wanted.name,
            run.wanted.user,
            f"{run.wanted.pods} x {run.wanted.gpus_per_pod}",
            run.wanted.flavor,
            f"{run.running_s:.2f} s",
            f"{run.over_s:.2f} s",
            f"{run.held:.1f}",
            f"{run.charged} {run.currency}",
            run.nodes(),
        )
        for run in runs
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def main(url: str, tokens_file: str) -> int:
    tokens: dict[str, str] = json.loads(Path(tokens_file).read_text())
    try:
        await_devices(Api(url, tokens[SUBMISSIONS[0].user]))
        runs = [submit(url, tokens, wanted) for wanted in SUBMISSIONS]
        follow(runs)
        check_prices(runs)
        print(figures(runs))
    except Failed as error:
        print(f"smoke: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
