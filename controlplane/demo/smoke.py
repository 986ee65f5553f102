"""What a user would do, through the REST API only: submit, watch it run, read what it cost.

What must not live here: any look behind the API, at rows or at a cluster.
"""

import http.client
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

_STARTS_WITHIN_S = 60.0
_ENDS_WITHIN_S = 120.0
_CHARGED_WITHIN_S = 60.0
_POLL_S = 0.1
_STARTED = ("RUNNING", "SUCCEEDED")
_OVER = ("SUCCEEDED", "FAILED", "CANCELLED")

Json = dict[str, Any]  # Any: JSON of the API


class Failed(Exception):
    """The smoke test's verdict, as a sentence."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One workload to submit: who, what, on how many GPUs."""

    user: str
    name: str
    pods: int
    gpus_per_pod: int
    flavor: str

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
                    "command": ["sleep", "20"],
                    "args": [],
                    "env": {},
                }
            ],
        }


SUBMISSIONS = (
    Submission(user="ben", name="smoke-mig", pods=1, gpus_per_pod=1, flavor="a100-80gb.1g.10gb"),
    Submission(user="cleo", name="smoke-gang", pods=2, gpus_per_pod=8, flavor="h100-80gb"),
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
        """All rows of a list, following its pages."""
        rows: list[Json] = []
        page = self.get(path, **query)
        while True:
            rows += page["results"]
            if not page.get("next"):
                return rows
            target = urlsplit(page["next"])
            page = self._ask("GET", f"{target.path}?{target.query}", None, expect=200, prefix="")

    def _ask(
        self, method: str, path: str, body: str | None, *, expect: int, prefix: str = "/api/v1/"
    ) -> Json:
        connection = http.client.HTTPConnection(self._host, timeout=30)
        try:
            connection.request(method, prefix + path, body, self._headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status != expect:
            raise Failed(f"{method} {prefix}{path} answered {answer.status}: {text[:500]}")
        found: Json = json.loads(text)
        return found


@dataclass(slots=True)
class Run:
    """One submission and what was seen of it."""

    wanted: Submission
    api: Api
    project: str
    id: str
    submitted_at: float  # monotonic
    running_s: float = 0.0
    over_s: float = 0.0
    charged: Decimal = Decimal(0)

    def state(self) -> str:
        return str(self.api.get(f"workloads/{self.id}")["state"]).upper()


def submit(url: str, tokens: Mapping[str, str], wanted: Submission) -> Run:
    """Submit to its user's first project."""
    api = Api(url, tokens[wanted.user])
    projects = api.every("projects")
    if not projects:
        raise Failed(f"{wanted.user} sees no project")
    project = str(projects[0]["id"])
    answer = api.post("workloads", wanted.body(project))
    return Run(wanted, api, project, str(answer["id"]), time.monotonic())


def follow(runs: Sequence[Run]) -> None:
    """Wait until each run has started, then ended, then was charged."""

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
        rows = run.api.every("charges", project=run.project)
        run.charged = sum(
            (Decimal(row["amount"]) for row in rows if row["workload"] == run.id), Decimal(0)
        )
        return run.charged > 0

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


def figures(runs: Sequence[Run]) -> str:
    """The table to print."""
    rows = [("workload", "user", "pods x GPUs", "submit to running", "to its end", "charged")]
    rows += [
        (
            run.wanted.name,
            run.wanted.user,
            f"{run.wanted.pods} x {run.wanted.gpus_per_pod} {run.wanted.flavor}",
            f"{run.running_s:.2f} s",
            f"{run.over_s:.2f} s",
            f"{run.charged}",
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
        runs = [submit(url, tokens, wanted) for wanted in SUBMISSIONS]
        follow(runs)
    except Failed as error:
        print(f"smoke: {error}")
        return 1
    print(figures(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
