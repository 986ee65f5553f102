"""Pure: the pod that looks whether it sees devices that it never asked for (reliability T7), and
what it tells.

It stands in Berth's own namespace, runs as a project's pods do and asks for no device, but wants
to see all of them, as an image may. It tells by its termination message, which is in the pod's
status: to read it takes no right to logs. The message has a first and a last line, so that one
that is cut, or of another image's making, is no answer.
"""

from clusters.adapters.kubernetes import manifests
from clusters.adapters.kubernetes.checks import Json, mapping
from clusters.adapters.kubernetes.failures import printable
from clusters.adapters.kubernetes.names import HOSTNAME, Names
from clusters.adapters.kubernetes.translate import main_container
from clusters.adapters.kubernetes.translate import pod as translated
from clusters.exposure import ExposureReport
from clusters.port import PodPhase

NAME = "berth-exposure"
RUNS_S = 300
"""Its time from the start, pulling the image included, until its kubelet ends it."""
FIRST, LAST = "looked", "done"
MOST_SEEN = 20
"""Lines that are kept of what it saw."""
_SCRIPT = f"""\
{{
  echo {FIRST}
  left={MOST_SEEN}
  for device in /dev/nvidia* /dev/dri/renderD* /dev/kfd /dev/dxg; do
    [ -e "$device" ] && [ $left -gt 0 ] && echo "$device" && left=$((left - 1))
  done
  nvidia-smi -L 2>/dev/null | while read -r line && [ $left -gt 0 ]; do
    case $line in "GPU "[0-9]*) echo "$line" && left=$((left - 1)) ;; esac
  done
  echo {LAST}
}} >/dev/termination-log
"""
# It takes no tool but a shell, as a missing one would pass for a missing device, and few lines, as
# a kubelet keeps 4,096 bytes.


def pod(*, hostname: str, tolerates: str, image: str, names: Names) -> Json:
    """Of none of our workloads: it has the installation's label alone, by which nobody else may
    change it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": NAME,
            "namespace": names.home,
            "labels": {names.label_installation: names.installation},
        },
        "spec": {
            "restartPolicy": "Never",
            "priorityClassName": names.priority_class("low"),
            "serviceAccountName": names.workload_account,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "activeDeadlineSeconds": RUNS_S,
            "nodeSelector": {HOSTNAME: hostname},
            "securityContext": manifests.POD_SECURITY,
            "tolerations": manifests.tolerations(tolerates),
            "containers": [
                {
                    "name": "main",
                    "image": image,
                    "command": ["sh", "-c", _SCRIPT],
                    "env": [
                        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
                        {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"},
                    ],
                    # It takes nothing from work that needs the whole node.
                    "resources": {
                        "requests": {"cpu": "0", "memory": "0"},
                        "limits": {"cpu": "100m", "memory": "64Mi"},
                    },
                    "securityContext": manifests.CONTAINER_SECURITY,
                }
            ],
        },
    }


def report(body: Json, *, names: Names) -> ExposureReport:
    """Raises Malformed."""
    found = translated(body, names=names)
    if not found.phase.ended:
        return ExposureReport(uid=found.uid, ended=False, why=found.reason, node=found.node)
    _, state = main_container(mapping(body, "spec"), mapping(body, "status"))
    saw = _seen(mapping(state, "terminated").get("message"))
    if found.phase is not PodPhase.SUCCEEDED or saw is None:
        why = found.reason or "it ended and said nothing that could be read"
        return ExposureReport(uid=found.uid, ended=True, why=why, node=found.node)
    return ExposureReport(uid=found.uid, ended=True, saw=saw, node=found.node)


def _seen(message: object) -> tuple[str, ...] | None:
    lines = message.split("\n") if isinstance(message, str) else []
    told = [line.strip() for line in lines if line.strip()]
    if len(told) < 2 or told[0] != FIRST or told[-1] != LAST:
        return None
    return tuple(printable(line, longest=120) for line in told[1:-1][:MOST_SEEN])
