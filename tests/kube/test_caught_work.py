"""Work made in a real cluster by its own controllers waits for Berth, is admitted whole, is
charged; and what its people do to dodge that is in vain (R5)."""

import threading
from decimal import Decimal

from django.db import connection
from django.db.models import Sum

from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.watching import watch
from scheduler.models import CaughtPod, Origin, Placement, Workload
from scheduler.services import workloads
from tenants.models import Charge, UsageInterval
from tests.flows.world import spec
from tests.kube.api import MERGE_PATCH, Json
from tests.kube.lab import Lab, cluster, lab
from tests.waiting import eventually

__all__ = ["cluster", "lab"]


def told(work: Workload) -> str:
    """Why it waits."""
    assert work.reason is not None
    return str(work.reason["text"])


def refusals(lab: Lab) -> dict[str, str]:
    """By pod that waits outside the queue: why."""
    found = CaughtPod.objects.filter(pod_set__isnull=True, gone_at__isnull=True)
    return dict(found.values_list("name", "refusal"))


def spent(work: Workload) -> Decimal:
    charged = Charge.objects.filter(usage__workload_id=work.id)
    return charged.aggregate(sum=Sum("amount"))["sum"] or Decimal(0)


def test_a_pytorch_job_waits_is_admitted_whole_and_is_charged(lab: Lab) -> None:
    hog = lab.hog()
    lab.pytorch_job("bert")
    four = {"bert-master-0", "bert-worker-0", "bert-worker-1", "bert-worker-2"}
    work = lab.waits("quota-used")
    assert work.state == State.PENDING
    assert "32 asked and 8 in use; the project may hold at most 32 h100" in told(work)
    assert (work.name, work.project, work.submitted_by.username) == (
        "bert",
        lab.vision,
        "system:kubernetes",
    )
    assert lab.gated() == four

    workloads.cancel(actor=lab.ada, workload=hog, at=now())
    lab.until_state(hog, State.CANCELLED)
    lab.until_state(work, State.RUNNING, State.SUCCEEDED)
    # All four, in one attempt: none was open before all were charged for.
    assert lab.gated() == set()
    opened = Placement.objects.filter(workload=work)
    assert {each.opened_at for each in opened}.isdisjoint({None})
    assert opened.count() == 4
    assert sum(each.amount_milli for each in opened) == 32_000
    nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in lab.pods()}
    assert len({nodes[name] for name in four}) == 4
    lab.until_state(work, State.SUCCEEDED)
    held = [each.during for each in UsageInterval.objects.filter(workload_id=work.id)]
    seconds = sum((each.upper - each.lower).total_seconds() for each in held)
    assert seconds >= 4 * 2
    assert abs(spent(work) - Decimal(seconds) * 8) < 1  # a second of a GPU costs 1
    # What has ended is its owner's to keep.
    for _ in range(3):
        lab.turn()
    assert four <= {pod["metadata"]["name"] for pod in lab.pods()}


def test_a_job_of_the_clusters_own_controller_does_so_too(lab: Lab) -> None:
    template = lab.template(gpus=4)
    job: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sweep"},
        "spec": {"parallelism": 2, "completions": 2, "template": template},
    }
    jobs = f"/apis/batch/v1/namespaces/{lab.work.namespace}/jobs"
    lab.work.editor.create(jobs, job)
    eventually("its pods are there", lambda: len(lab.gated()) == 2)
    lab.turn()
    work = lab.only()
    assert [(each.name, each.count) for each in work.pod_sets.all()] == [("main", 2)]
    lab.until_state(work, State.SUCCEEDED)
    done = f"{jobs}/sweep"
    eventually("the Job is", lambda: lab.work.kube.admin.get(done)["status"].get("succeeded") == 2)


def gang(lab: Lab, name: str, size: int, *, cpu: str = "100m") -> Json:
    pod = lab.work.pod(name)
    pod["metadata"]["annotations"] = {"berth.dev/gang": "ring", "berth.dev/gang-size": str(size)}
    [container] = pod["spec"]["containers"]
    container["command"] = ["sleep", "2"]
    container["resources"]["requests"]["cpu"] = cpu
    return pod


def test_bare_pods_that_name_a_gang_wait_for_each_other(lab: Lab) -> None:
    for name in ("a", "b"):
        assert lab.work.create(gang(lab, name, 3)).status == 201
    work = lab.waits("gathering")
    assert told(work).startswith("1 of the 3 pods that start together are not there yet")
    assert lab.gated() == {"a", "b"}
    lab.work.create(gang(lab, "c", 3))
    lab.until_state(work, State.SUCCEEDED)
    assert lab.gated() == set()
    assert Origin.objects.get(workload=work).creator.endswith(":editor")


def test_who_takes_the_name_of_a_gang_gets_no_place_in_it(lab: Lab) -> None:
    lab.hog(pods=4)
    lab.work.create(gang(lab, "a", 2))
    lab.turn()
    lab.work.create(gang(lab, "bigger", 2, cpu="4"))
    lab.turn()
    why = "It asks for other cores or memory than the others of gang ring."
    assert refusals(lab) == {"bigger": why}
    lab.work.create(gang(lab, "b", 2))
    lab.turn()
    lab.work.create(gang(lab, "spoofed", 2))
    lab.turn()
    assert refusals(lab)["spoofed"] == "gang ring has all its 2 pods; this is one more."
    assert lab.gated() == {"a", "b", "bigger", "spoofed"}
    assert Origin.objects.count() == 1


def raised(lab: Lab, job: Json, workers: int) -> Json:
    """As an editor of the job does it."""
    body: Json = {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": workers}}}}
    path = f"/apis/kubeflow.org/v1/namespaces/{lab.work.namespace}/pytorchjobs/bert"
    return lab.work.kube.admin.do("PATCH", path, body, content_type=MERGE_PATCH)


def test_pods_beyond_the_size_that_was_caught_stay_gated_and_are_told(lab: Lab) -> None:
    job = lab.pytorch_job("bert", workers=1, seconds=60)
    lab.turn()
    work = lab.only()
    lab.until_state(work, State.RUNNING)
    lab.operator.turn(raised(lab, job, 3))
    for _ in range(3):
        lab.turn()
    assert lab.gated() == {"bert-worker-1", "bert-worker-2"}
    why = "PyTorchJob bert has all its 1 pods; this is one more."
    assert refusals(lab) == {"bert-worker-1": why, "bert-worker-2": why}
    assert Placement.objects.filter(workload=work).count() == 2


def test_so_do_those_of_a_job_that_is_made_wider(lab: Lab) -> None:
    spec = {"parallelism": 1, "template": lab.template(seconds=60)}
    jobs = f"/apis/batch/v1/namespaces/{lab.work.namespace}/jobs"
    body: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "wide"}}
    lab.work.editor.create(jobs, {**body, "spec": spec})
    eventually("its pod is there", lambda: len(lab.gated()) == 1)
    lab.turn()
    lab.until_state(lab.only(), State.RUNNING)
    wider: Json = {"spec": {"parallelism": 3}}
    lab.work.editor.do("PATCH", f"{jobs}/wide", wider, content_type=MERGE_PATCH)
    eventually("it has more pods", lambda: len(lab.gated()) == 2)
    for _ in range(3):
        lab.turn()
    assert len(lab.gated()) == 2
    assert set(refusals(lab).values()) == {"Job wide has all its 1 pods; this is one more."}


def test_work_whose_owner_asks_for_less_meanwhile_is_asked_for_anew(lab: Lab) -> None:
    lab.hog()
    job = lab.pytorch_job("bert")
    before = lab.waits("quota-used")
    raised(lab, job, 1)
    for name in ("bert-worker-1", "bert-worker-2"):  # as its operator does
        lab.work.kube.admin.delete(f"{lab.work.path}/pods/{name}")
    lab.until_state(before, State.CANCELLED)
    assert before.events.latest("id").message == "its PyTorchJob bert asks for other pods now"
    lab.until(lambda: Origin.objects.count() == 2)
    after = Workload.objects.exclude(id=before.id).get(origin__isnull=False)
    assert {each.name: each.count for each in after.pod_sets.all()} == {"master": 1, "worker": 1}
    lab.until_state(after, State.SUCCEEDED)


def test_what_its_owner_leaves_behind_is_cancelled(lab: Lab) -> None:
    lab.hog()
    lab.pytorch_job("bert")
    work = lab.waits("quota-used")
    path = f"/apis/kubeflow.org/v1/namespaces/{lab.work.namespace}/pytorchjobs/bert"
    lab.work.kube.admin.delete(path)
    # The garbage collector takes its pods, and looks every 30 s which kinds there are.
    lab.until_state(work, State.CANCELLED)
    assert work.events.latest("id").message == "its PyTorchJob bert was deleted"


def test_what_was_evicted_starts_again_with_the_pods_that_are_made_anew(lab: Lab) -> None:
    job = lab.pytorch_job("bert", seconds=4)
    lab.turn()
    work = lab.only()
    lab.until_state(work, State.RUNNING)
    [urgent] = lab.submit(spec("h100", gpus=8, priority_class="urgent", name="urgent"))
    lab.until_state(work, State.PENDING)
    lab.until_state(urgent, State.SUCCEEDED)
    assert lab.waits("gathering") == work
    lab.operator.turn(job)
    lab.until_state(work, State.SUCCEEDED)
    outcomes = work.attempts.order_by("number").values_list("outcome", flat=True)
    assert list(outcomes) == ["preempted", "succeeded"]


def test_what_could_never_start_stays_gated_and_is_told_why(lab: Lab) -> None:
    lab.pytorch_job("bert", workers=7)
    lab.take_in()
    assert len(lab.gated()) == 8
    assert "64 in all; even empty, one cluster has 32" in refusals(lab)["bert-master-0"]
    assert not Workload.objects.exists()


def test_a_sidecar_is_asked_for_and_charged_beside_the_containers(lab: Lab) -> None:
    template = lab.template(gpus=4)
    [container] = template["spec"]["containers"]
    plain = container | {"command": ["true"]}
    logs = plain | {"name": "logs", "restartPolicy": "Always"}
    logs["resources"] = {"requests": {"cpu": "250m", "memory": "64Mi"}}
    first = plain | {"name": "first", "resources": {"requests": {"cpu": "150m"}}}
    template["spec"]["initContainers"] = [logs, first]
    jobs = f"/apis/batch/v1/namespaces/{lab.work.namespace}/jobs"
    body: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "logged"}}
    lab.work.editor.create(jobs, {**body, "spec": {"template": template}})
    eventually("its pod is there", lambda: len(lab.gated()) == 1)
    lab.turn()
    work = lab.only()
    [asked] = work.pod_sets.all()
    # The sidecar runs beside what starts before the containers, and beside them.
    assert (asked.cpu_milli, asked.memory_mib, asked.gpu_count) == (400, 64 + 128, 4)
    lab.until_state(work, State.SUCCEEDED)


def test_a_pod_behind_the_gate_of_somebody_else_is_told_so_and_taken_in_after(lab: Lab) -> None:
    pod = lab.work.pod("volume")
    pod["spec"]["schedulingGates"] = [{"name": "example.test/storage"}]
    pod["spec"]["containers"][0]["command"] = ["sleep", "1"]
    assert lab.work.create(pod).status == 201
    lab.turn()
    assert refusals(lab) == {
        "volume": "Somebody else's gate holds it, too: example.test/storage."
        " Berth takes it in after."
    }
    gone = [{"name": "example.test/storage", "$patch": "delete"}]
    assert lab.work.patch("volume", {"spec": {"schedulingGates": gone}}).status == 200
    lab.turn()
    lab.until_state(lab.only(), State.SUCCEEDED)


def test_what_was_caught_before_its_namespace_was_confined_starts_again_after(lab: Lab) -> None:
    """Its first pods say nothing of memory, and those that are made anew were given some."""
    defaults = f"{lab.work.path}/limitranges/berth"
    lab.work.kube.admin.delete(defaults)
    job = lab.pytorch_job("bert", seconds=4)
    [first, *_] = lab.pods()
    assert "memory" not in first["spec"]["containers"][0]["resources"]["requests"]
    lab.turn()  # confines it before the first pod is opened
    work = lab.only()
    lab.until_state(work, State.RUNNING)
    assert lab.work.kube.admin.call("GET", defaults).status == 200
    [urgent] = lab.submit(spec("h100", gpus=8, priority_class="urgent", name="urgent"))
    lab.until_state(work, State.PENDING)
    lab.until_state(urgent, State.SUCCEEDED)
    lab.operator.turn(job)
    lab.until_state(work, State.SUCCEEDED)
    outcomes = work.attempts.order_by("number").values_list("outcome", flat=True)
    assert list(outcomes) == ["preempted", "succeeded"]


def test_pods_of_which_nobody_knows_how_many_belong_together_start_one_by_one(lab: Lab) -> None:
    template = lab.template(gpus=8)
    template["metadata"]["labels"]["app"] = "serve"
    del template["spec"]["restartPolicy"]
    body: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "serve"}},
            "template": template,
        },
    }
    lab.quota(lab.vision, "h100", 8, borrowing=0)
    deployments = f"/apis/apps/v1/namespaces/{lab.work.namespace}/deployments"
    lab.work.editor.create(deployments, body)
    eventually("its pods are there", lambda: len(lab.gated()) == 2)
    lab.until(lambda: Workload.objects.filter(state=State.RUNNING).count() == 1)
    assert len(lab.gated()) == 1
    assert {str(origin) for origin in Origin.objects.all()} == {"Deployment serve"}


def test_a_watch_takes_it_in_by_itself(lab: Lab) -> None:
    stop = threading.Event()

    def run() -> None:
        try:
            watch.Watch(cluster=lab.cluster, port=lab.port, at=now, stop=stop).run()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        lab.pytorch_job("bert", workers=1)
        eventually("it is a workload", lambda: Origin.objects.first())
        taken = CaughtPod.objects.filter(pod_set__isnull=False)
        eventually("both pods are its", lambda: taken.count() == 2)
    finally:
        stop.set()
        thread.join()
