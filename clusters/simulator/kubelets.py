"""The simulated kubelets: containers start, run their time on the shared clock, end, are stopped.

Times written into a pod are exact: what started at t and sleeps n ends at t + n, however late the
timer fires. A lost node's pods stand still until it returns.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusters.simulator import moments
from clusters.simulator.answers import Json
from clusters.simulator.programs import KILLED, program
from clusters.simulator.store import Store

STOP_S = 0.1  # real seconds that a program which heeds SIGTERM takes to stop
_TOO_LONG = "Pod was active on the node longer than the specified deadline"


@dataclass(slots=True)
class Run:
    """What a kubelet means to do next with one pod, and when."""

    node: str
    act: Callable[[str], None]
    timer: asyncio.TimerHandle | None = None
    started_at: datetime | None = None
    ends_at: datetime | None = None
    code: int = 0
    killed: bool = False  # for want of memory
    reason: str = ""
    late: bool = False  # the time came while the node was lost


class Kubelets:
    """All nodes' kubelets; `freed` is told the key of each pod that has ended."""

    def __init__(
        self,
        store: Store,
        *,
        freed: Callable[[str], None],
        start_delay_s: float = 0.2,
        speed: float | None = None,
    ) -> None:
        self._store = store
        self._freed = freed
        self._start_delay_s = start_delay_s
        self._speed = speed or 1.0
        self._runs: dict[str, Run] = {}
        self._lost: set[str] = set()
        # Node -> what its pods see without asking for it; None: whoever looks says nothing.
        self.exposed: dict[str, list[str] | None] = {}
        self.skew = timedelta(0)  # how much the kubelets' clocks are ahead

    def begin(self, key: str) -> None:
        """A pod was bound to a node: its container starts after the start delay."""
        pod = self._store.find("pods", key)
        if pod is None:
            return
        if any(item["image"].endswith(":missing") for item in pod["spec"]["containers"]):
            self._plan(key, pod, self._refuse_image, self._start_delay_s)
        else:
            self._plan(key, pod, self._start, self._start_delay_s)

    def resume(self, key: str, pod: Json) -> None:
        """Take a bound pod up again after a restart of the simulator."""
        if "deletionTimestamp" in pod["metadata"]:
            self._plan(key, pod, self._vanish, 0)
        elif pod["status"]["phase"] == "Running":
            running = pod["status"]["containerStatuses"][0]["state"]["running"]
            self._run_from(key, pod, moments.parsed(running["startedAt"]))
        else:
            self.begin(key)

    def stop(self, key: str, grace_s: int) -> None:
        """SIGTERM now, SIGKILL after the grace period, then the pod is gone."""
        pod = self._store.find("pods", key)
        if pod is None:
            return
        run = self._runs.get(key)
        if run is None or run.started_at is None:
            self._plan(key, pod, self._vanish, STOP_S)
            return
        played = program(pod)
        taken = grace_s / self._speed
        if not played.stubborn:
            taken = min(taken, STOP_S / moments.real_seconds(1))
        ends_at = moments.now() + timedelta(seconds=taken)
        if run.ends_at is None or ends_at < run.ends_at:
            run.code, run.reason = KILLED if played.stubborn else played.stopped, ""
            run.killed = False
            self._end_at(key, run, ends_at)

    def forget(self, key: str) -> None:
        """A pod is gone from the API, whatever its kubelet thinks."""
        run = self._runs.pop(key, None)
        if run is not None and run.timer is not None:
            run.timer.cancel()

    def lose(self, node: str) -> None:
        self._lost.add(node)

    def recover(self, node: str) -> None:
        """The node is back: what came due meanwhile happens now, under its true times."""
        self._lost.discard(node)
        for key, run in list(self._runs.items()):
            if run.node == node and run.late:
                run.late = False
                run.act(key)

    def fail(self, key: str, *, reason: str, message: str, by: str) -> None:
        """End a pod from outside; `by` is who disrupted it, such as DeletionByPodGC."""
        pod = self._store.find("pods", key)
        if pod is not None:
            self.forget(key)
            pod["status"].update(phase="Failed", reason=reason, message=message)
            disrupt(pod, by=by)
            self._store.put("pods", key, pod)
            self._freed(key)

    def _plan(self, key: str, pod: Json, act: Callable[[str], None], delay_s: float) -> None:
        self.forget(key)
        run = self._runs[key] = Run(node=pod["spec"]["nodeName"], act=act)
        self._set_timer(key, run, delay_s)

    def _end_at(self, key: str, run: Run, ends_at: datetime) -> None:
        if run.timer is not None:
            run.timer.cancel()
        run.act, run.late, run.ends_at = self._end, False, ends_at
        left_s = (ends_at - moments.now()).total_seconds()
        # Timers may fire a little early, and an end must not be told before it has come.
        self._set_timer(key, run, moments.real_seconds(left_s) + 0.001)

    def _set_timer(self, key: str, run: Run, delay_s: float) -> None:
        loop = asyncio.get_running_loop()
        run.timer = loop.call_later(max(0.0, delay_s), self._due, key, run)

    def _due(self, key: str, run: Run) -> None:
        if self._runs.get(key) is not run:
            return
        if run.node in self._lost:
            run.late = True
        else:
            run.act(key)

    def _start(self, key: str) -> None:
        pod = self._store.find("pods", key)
        if pod is None:
            return
        started_at = moments.now()
        at = moments.rfc3339(started_at + self.skew)
        container = pod["spec"]["containers"][0]
        pod["status"].update(
            phase="Running",
            startTime=at,
            containerStatuses=[
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": at}},
                }
            ],
        )
        self._store.put("pods", key, pod)
        self._run_from(key, pod, started_at)

    def _run_from(self, key: str, pod: Json, started_at: datetime) -> None:
        """Decide when and how the pod will end."""
        played = program(pod)
        limit_s = pod["spec"].get("activeDeadlineSeconds")
        run = self._runs[key] = Run(node=pod["spec"]["nodeName"], act=self._end)
        seconds, run.code, run.killed = played.seconds, played.code, played.killed
        if limit_s is not None and limit_s < seconds:
            seconds, run.code, run.reason = limit_s, KILLED, "DeadlineExceeded"
            run.killed = False
        run.started_at = started_at
        self._end_at(key, run, started_at + timedelta(seconds=seconds / self._speed))

    def _end(self, key: str) -> None:
        pod, run = self._store.find("pods", key), self._runs.get(key)
        if pod is None or run is None or run.ends_at is None:
            return
        status = pod["status"]
        container = status["containerStatuses"][0]
        container.update(ready=False, started=False)
        container["state"] = {
            "terminated": {
                "exitCode": run.code,
                "reason": _word(run),
                "startedAt": container["state"]["running"]["startedAt"],
                "finishedAt": moments.rfc3339(run.ends_at + self.skew),
            }
        }
        if program(pod).looks and (saw := self.exposed.get(run.node, [])) is not None:
            message = "\n".join(["looked", *saw, "done", ""])
            container["state"]["terminated"]["message"] = message
        status["phase"] = "Failed" if run.code else "Succeeded"
        if run.reason:
            status.update(reason=run.reason, message=_TOO_LONG)
        self.forget(key)
        self._store.put("pods", key, pod)
        self._freed(key)
        if "deletionTimestamp" in pod["metadata"]:
            self._store.remove("pods", key)

    def _vanish(self, key: str) -> None:
        """A pod that is being deleted before its container ran."""
        self.forget(key)
        self._store.remove("pods", key)
        self._freed(key)

    def _refuse_image(self, key: str) -> None:
        pod = self._store.find("pods", key)
        if pod is None:
            return
        self.forget(key)
        container = pod["spec"]["containers"][0]
        waiting = {
            "reason": "ErrImagePull",
            "message": f'failed to pull image "{container["image"]}": not found',
        }
        pod["status"]["containerStatuses"] = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"waiting": waiting},
            }
        ]
        self._store.put("pods", key, pod)


def disrupt(pod: Json, *, by: str) -> None:
    """Mark the pod as one that is made to end."""
    conditions = [*pod["status"].get("conditions", ()), {"type": "DisruptionTarget"}]
    conditions[-1].update(status="True", reason=by, message="")
    pod["status"]["conditions"] = conditions


def _word(run: Run) -> str:
    """How the container ended."""
    if run.killed:
        return "OOMKilled"
    return "Error" if run.code else "Completed"
