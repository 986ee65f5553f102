"""Events and logs of pods: what a test has them say, else what their status tells."""

import orjson

from clusters.simulator.answers import Json, bad_request, not_found
from clusters.simulator.store import Store

INSPECTED = {"events": "list", "pods/log": "get"}
"""The verb of each. Neither is stored: they can't be watched."""
_BY_UID = "involvedObject.uid="


class Inspected:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._events: dict[str, list[Json]] = {}
        self._logs: dict[str, bytes] = {}

    def say(self, key: str, *, log: str | None, events: list[Json] | None) -> None:
        """From now on the pod `key`, namespace/name, has this log, and these events."""
        if log is not None:
            self._logs[key] = log.encode()
        if events is not None:
            self._events[key] = events

    def events(self, namespace: str, query: dict[str, str]) -> bytes:
        """Of one pod, in no order."""
        selector = query.get("fieldSelector", "")
        if not selector.startswith(_BY_UID):
            bad_request(f"events are simulated by {_BY_UID} alone")
        uid = selector.removeprefix(_BY_UID)
        found = [
            {**event, "involvedObject": {"kind": "Pod", "uid": uid}, **_described(event)}
            for pod in self._store.bodies("pods")
            if pod["metadata"]["namespace"] == namespace and pod["metadata"]["uid"] == uid
            for event in self._events.get(f"{namespace}/{pod['metadata']['name']}", _told(pod))
        ]
        items = found[: int(query.get("limit") or len(found))]
        return orjson.dumps(
            {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": items}
        )

    def log(self, namespace: str, name: str, query: dict[str, str]) -> bytes:
        """As a kubelet: the last lines, and of those the first bytes."""
        key = f"{namespace}/{name}"
        pod = self._store.find("pods", key)
        if pod is None:
            not_found("pods", name)
        containers = [one["name"] for one in pod["spec"]["containers"]]
        if query.get("container") not in containers:
            bad_request(f"container {query.get('container')} is not valid for pod {name}")
        if "nodeName" not in pod["spec"]:
            return b""
        statuses = pod["status"].get("containerStatuses") or [{"state": {}}]
        if not statuses[0]["state"].keys() & {"running", "terminated"}:
            bad_request(
                f'container "{containers[0]}" in pod "{name}" is waiting to start:'
                " ContainerCreating"
            )
        told = self._logs.get(key, b"simulated: nothing is run\n")
        lines = told.splitlines(keepends=True)[-int(query.get("tailLines") or 1) :]
        return b"".join(lines)[: int(query.get("limitBytes") or len(told))]


def _described(event: Json) -> Json:
    """With what every event has, where it says nothing else."""
    return {"type": event.get("type", "Normal"), "count": event.get("count", 1)}


def _told(pod: Json) -> list[Json]:
    """What its scheduler and its kubelet would have said so far."""
    events = [
        {
            "reason": "Scheduled",
            "message": f"Successfully assigned {pod['metadata']['name']} to {node}",
            "lastTimestamp": pod["metadata"]["creationTimestamp"],
            "source": {"component": "default-scheduler"},
        }
        for node in [pod["spec"].get("nodeName")]
        if node
    ]
    for status in pod["status"].get("containerStatuses") or ():
        state = status["state"]
        began = state.get("running") or state.get("terminated")
        if began:
            events.append(
                {
                    "reason": "Started",
                    "message": f"Container started: {status['name']}",
                    "lastTimestamp": began["startedAt"],
                    "source": {"component": "kubelet"},
                }
            )
        elif waiting := state.get("waiting"):
            events.append(
                {
                    "type": "Warning",
                    "reason": "Failed",
                    "message": waiting["message"],
                    "lastTimestamp": pod["metadata"]["creationTimestamp"],
                    "source": {"component": "kubelet"},
                }
            )
    return events
