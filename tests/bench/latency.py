"""Submit to running on an idle installation: 200 submissions, one at a time, through the API.

Run by itself it is the steps that `manage.py smoke` runs beside a fresh installation. The clock
goes from just before the POST to the first answer that says RUNNING.
"""

import http.client
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.bench.report import ROOT, Figures, percentile, plain_environ

SUBMISSIONS = 200
WARM_UP = 5
POLL_S = 0.02
_MARK = "found: "
_WITHIN_S = 30.0

type Json = dict[str, Any]  # Any: JSON of the API


def take(figures: Figures) -> None:
    """Start Berth apart, submit, and add the figures."""
    seconds: list[float] = beside_berth("tests.bench.latency")
    figures.add("submit_to_running_count", len(seconds), "submissions")
    for percent in (50, 90, 99):
        value = percentile(seconds, percent) * 1000
        figures.add(f"submit_to_running_p{percent}_ms", value, "ms")
    figures.add("submit_to_running_max_ms", max(seconds) * 1000, "ms")


def beside_berth(steps: str) -> Any:  # Any: JSON
    """What steps beside a fresh installation told by `tell`."""
    command = [sys.executable, "manage.py", "smoke", "--steps", steps]
    done = subprocess.run(
        command, cwd=ROOT, env=plain_environ(), stdout=subprocess.PIPE, text=True
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not lines:
        raise SystemExit(f"the steps of {steps} went wrong:\n{done.stdout}")
    return json.loads(lines[0].removeprefix(_MARK))


def tell(seconds: object) -> None:
    print(_MARK + json.dumps(seconds))


class Api:
    """One connection, as any HTTP library keeps it."""

    def __init__(self, url: str, token: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        status, data = self.try_to(method, path, body)
        if status >= 300:
            raise SystemExit(f"{method} {path} answered {status}: {data[:500]!r}")
        found: Json = json.loads(data)
        return found

    def try_to(self, method: str, path: str, body: Json | None = None) -> tuple[int, bytes]:
        text = None if body is None else json.dumps(body)
        self._connection.request(method, f"/api/v1/{path}", text, self._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def body(project: str, name: str, **fields: object) -> Json:
    """A workload of one GPU for a second."""
    return {
        "project": project,
        "name": name,
        **fields,
        "pod_sets": [
            {
                "name": "main",
                "cpu_milli": 1000,
                "memory_mib": 1024,
                "gpu_count": 1,
                "flavors": ["h100-80gb"],
                "image": "busybox",
                "command": ["sleep", "1"],
            }
        ],
    }


def once(api: Api, body: Json) -> float:
    """Seconds from the submission of a workload until it runs."""
    began = time.perf_counter()
    id = api.ask("POST", "workloads", body)["id"]
    while True:
        state = api.ask("GET", f"workloads/{id}")["state"]
        took = time.perf_counter() - began
        if state in ("RUNNING", "SUCCEEDED"):
            return took
        if took > _WITHIN_S:
            raise SystemExit(f"{body['name']} is {state} after {took:.0f} s")
        time.sleep(POLL_S)


def ready(api: Api) -> str:
    """The project to submit to, once the clusters' nodes are known: until then what no cluster has
    is refused, and so is everything."""
    [project] = [
        row["id"] for row in api.ask("GET", "projects")["items"] if row["slug"] == "pretraining"
    ]
    deadline = time.monotonic() + _WITHIN_S
    while api.try_to("POST", "workloads", body(project, "first"))[0] != 201:
        if time.monotonic() > deadline:
            raise SystemExit("the clusters' nodes do not become known")
        time.sleep(0.2)
    return str(project)


def main(url: str, tokens_file: str) -> int:
    tokens: dict[str, str] = json.loads(Path(tokens_file).read_text())
    api = Api(url, tokens["cleo"])
    project = ready(api)
    for index in range(WARM_UP):
        once(api, body(project, f"warm-up-{index}"))
    seconds = [once(api, body(project, f"latency-{index}")) for index in range(SUBMISSIONS)]
    tell([round(each, 4) for each in seconds])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
