"""The port, where it reads what a cluster says of a pod: events on both; the log of a kubelet that
the simulator plays, and that a real API server has none of."""

from collections.abc import Iterator, Mapping

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.rights import LOG_RIGHTS
from clusters.inspection import LOG_KIB, MOST_EVENTS, LogTail
from clusters.port import ClusterError, Fault, PodPhase, PodReport
from tests.contract.stage import Stage
from tests.waiting import eventually


@pytest.fixture
def port(stage: Stage) -> Iterator[KubernetesCluster]:
    """Of an installation that may read events and logs."""
    with stage.inspecting() as port:
        yield port


@pytest.fixture
def pod(stage: Stage) -> PodReport:
    return stage.port.create_pod(request=stage.request())


def say(stage: Stage, pod: PodReport, *events: Mapping[str, object]) -> None:
    """These events of the pod, and one of another that is not the pod's."""
    if stage.simulated:
        said = {"kind": "pod-says", "pod": f"{pod.namespace}/{pod.name}", "events": events}
        stage.admin("POST", "/_simulator/faults", said)
        return
    of = {"kind": "Pod", "namespace": pod.namespace, "name": pod.name}
    other: Mapping[str, object] = {"reason": "Other", "message": "of another pod of that name"}
    for number, event in enumerate([*events, other]):
        uid = pod.uid if event is not other else "00000000-0000-0000-0000-000000000000"
        body: dict[str, object] = {
            "metadata": {"name": f"{pod.name}.{number}", "namespace": pod.namespace},
            "involvedObject": {**of, "uid": uid},
            **event,
        }
        stage.admin("POST", f"/api/v1/namespaces/{pod.namespace}/events", body)


def test_the_events_of_that_pod_are_told_the_latest_first(
    stage: Stage, port: KubernetesCluster, pod: PodReport
) -> None:
    say(
        stage,
        pod,
        {
            "type": "Normal",
            "reason": "Pulling",
            "message": 'Pulling image\n"x"',
            "lastTimestamp": "2030-01-01T10:00:00Z",
            "source": {"component": "kubelet"},
        },
        {
            "type": "Warning",
            "reason": "BackOff",
            "message": "Back-off pulling image",
            "count": 7,
            "lastTimestamp": "2030-01-01T11:00:00Z",
            "source": {"component": "kubelet"},
        },
    )
    last, first = port.read_events(namespace=pod.namespace, uid=pod.uid)
    assert (last.reason, last.count, last.is_warning, last.component) == (
        "BackOff",
        7,
        True,
        "kubelet",
    )
    assert (first.reason, first.said, first.is_warning) == ("Pulling", 'Pulling image "x"', False)
    assert first.at is not None
    assert first.at.isoformat() == "2030-01-01T10:00:00+00:00"


def test_of_many_events_the_latest_are_told(
    stage: Stage, port: KubernetesCluster, pod: PodReport
) -> None:
    say(
        stage,
        pod,
        *(
            {"reason": f"R{minute}", "lastTimestamp": f"2030-01-01T10:{minute:02}:00Z"}
            for minute in range(MOST_EVENTS + 5)
        ),
    )
    found = port.read_events(namespace=pod.namespace, uid=pod.uid)
    assert [one.reason for one in found] == [f"R{n}" for n in range(MOST_EVENTS + 4, 4, -1)]


def test_without_the_rights_both_are_forbidden(stage: Stage, pod: PodReport) -> None:
    port = stage.port
    if stage.simulated:
        for right in LOG_RIGHTS:
            fault = {"kind": "forbid", "verb": right.verb, "resource": right.resource}
            stage.admin("POST", "/_simulator/faults", {**fault, "count": 0})
    with pytest.raises(ClusterError) as events:
        port.read_events(namespace=pod.namespace, uid=pod.uid)
    with pytest.raises(ClusterError) as log:
        port.read_log(namespace=pod.namespace, name=pod.name, uid=pod.uid)
    assert [events.value.fault, log.value.fault] == [Fault.FORBIDDEN, Fault.FORBIDDEN]
    said = {step.name: step.said for step in port.probe()}["logs"]
    assert "Berth shows no events and logs of pods there" in said
    assert "`manage.py cluster_manifest --logs`" in said


def test_the_log_of_a_pod_without_a_node_is_empty(port: KubernetesCluster, pod: PodReport) -> None:
    tail = port.read_log(namespace=pod.namespace, name=pod.name, uid=pod.uid)
    assert tail == LogTail(text="", is_cut=False)


def test_another_pod_of_the_name_is_not_taken_for_it(
    port: KubernetesCluster, pod: PodReport
) -> None:
    with pytest.raises(ClusterError) as error:
        port.read_log(namespace=pod.namespace, name=pod.name, uid="another")
    assert error.value.fault is Fault.NOT_FOUND
    assert port.read_events(namespace=pod.namespace, uid="another") == []


@pytest.mark.parametrize(
    ("said", "told", "is_cut"),
    [
        ("one\ntwo\n", "one\ntwo\n", False),
        ("", "", False),
        ("\x1b[31mred\x1b[0m\x00\u202e\r\nend\n", "red\ufffd\ufffd\nend\n", False),
        ("a\u200bb\u2066c", "a\ufffdb\ufffdc", False),
        ("\x01" * 40 * 1024, None, True),
        ("x" * 70 * 1024, "x" * LOG_KIB * 1024, True),
        ("".join(f"{n:063}\n" for n in range(3000)), None, True),
        ("".join("y" * 4095 + "\n" for _ in range(600)) + "end\n", None, True),
    ],
    ids=[
        "short",
        "empty",
        "unprintable",
        "unseen",
        "grown",
        "one-long-line",
        "many-lines",
        "long-lines",
    ],
)
def test_the_end_of_a_log_is_told(
    stage: Stage, port: KubernetesCluster, said: str, told: str | None, is_cut: bool
) -> None:
    pod = stage.start(stage.add_node(gpus=8), command=("sleep", "600"))
    stage.wait(pod, PodPhase.RUNNING)
    stage.log(pod, said)

    tail = eventually(
        "the log is read",
        lambda: port.read_log(namespace=pod.namespace, name=pod.name, uid=pod.uid),
    )
    assert tail.is_cut is is_cut
    assert len(tail.text.encode()) <= LOG_KIB * 1024
    if told is not None:
        assert tail.text == told
    else:
        assert said.replace("\x01", "\ufffd").endswith(tail.text)
        assert len(tail.text.encode()) > LOG_KIB * 1024 * 0.9
