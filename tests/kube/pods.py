"""Gated pods, started as Berth starts them, and what to read from them."""

from datetime import datetime
from typing import Any

from tests.kube.api import MERGE_PATCH, Answer, Json
from tests.kube.control_plane import ControlPlane
from tests.waiting import eventually

GATE = "berth.dev/placed"


class Pods:
    """The pods of one namespace, handled with Berth's own least-privilege token."""

    def __init__(self, kube: ControlPlane, namespace: str) -> None:
        self.api = kube.berth
        self.path = f"/api/v1/namespaces/{namespace}/pods"

    def create_gated(
        self, name: str, *, command: list[str] | None = None, **resources: int
    ) -> Json:
        """A pod behind Berth's gate; `gpu=4` asks for four of nvidia.com/gpu."""
        limits = {f"nvidia.com/{key}": str(count) for key, count in resources.items()}
        return self.api.create(
            self.path,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": {"berth.dev/workload": name}},
                "spec": {
                    "restartPolicy": "Never",
                    "schedulingGates": [{"name": GATE}],
                    "containers": [
                        {
                            "name": "main",
                            "image": "example.test/train:1",
                            "command": command or ["sleep", "infinity"],
                            "resources": {"limits": limits},
                        }
                    ],
                },
            },
        )

    def open_gate(self, pod: Json, node: str, **metadata: str) -> Answer:
        """The one merge patch that starts a pod, on condition of its uid and resourceVersion."""
        seen = {key: pod["metadata"][key] for key in ("uid", "resourceVersion")}
        body = {
            "metadata": seen | metadata,
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node},
                "schedulingGates": None,
            },
        }
        path = f"{self.path}/{pod['metadata']['name']}"
        return self.api.call("PATCH", path, body, content_type=MERGE_PATCH)

    def start(self, name: str, node: Json, **kwargs: Any) -> None:
        """Create a gated pod and open it onto `node`."""
        opened = self.open_gate(self.create_gated(name, **kwargs), node["metadata"]["name"])
        assert opened.status == 200, opened.body

    def get(self, name: str) -> Json:
        return self.api.get(f"{self.path}/{name}")

    def wait_for(self, name: str, phase: str) -> Json:
        """The pod, once it is in `phase`."""

        def there() -> Json | None:
            pod = self.get(name)
            return pod if pod["status"]["phase"] == phase else None

        return eventually(f"pod {name} is {phase}", there)

    def wait_for_reason(self, name: str, reason: str) -> Json:
        """The PodScheduled condition, once it carries `reason`."""

        def there() -> Json | None:
            scheduled = condition(self.get(name), "PodScheduled")
            return scheduled if scheduled.get("reason") == reason else None

        return eventually(f"pod {name} is {reason}", there)


def condition(pod: Json, kind: str) -> Json:
    """The condition of one type, or nothing."""
    conditions: list[Json] = pod["status"].get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


def ended(pod: Json) -> Json:
    """The terminated state of the pod's only container."""
    [status] = pod["status"]["containerStatuses"]
    terminated: Json = status["state"]["terminated"]
    return terminated


def seconds(state: Json) -> float:
    """How long a terminated container ran."""
    started, finished = (datetime.fromisoformat(state[key]) for key in ("startedAt", "finishedAt"))
    return (finished - started).total_seconds()
