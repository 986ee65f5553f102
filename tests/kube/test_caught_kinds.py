"""The kinds of others, each made as its own controller makes it: what starts together of them."""

import pytest

from scheduler.core.lifecycle import State
from scheduler.models import Origin
from tests.kube.lab import Lab, cluster, lab
from tests.waiting import eventually

__all__ = ["cluster", "lab"]


def test_of_a_ray_cluster_the_head_and_all_groups_start_together(lab: Lab) -> None:
    worker = {"groupName": "gpu", "replicas": 2, "template": lab.template(gpus=8)}
    head = {"template": lab.template(gpus=0, queue="")}
    lab.make("RayCluster", "ray", {"headGroupSpec": head, "workerGroupSpecs": [worker]})
    assert len(lab.gated()) == 3
    lab.turn()
    work = lab.only()
    assert {each.name: each.count for each in work.pod_sets.all()} == {"headgroup": 1, "gpu": 2}
    lab.until_state(work, State.SUCCEEDED)


@pytest.mark.parametrize(
    ("kind", "of"), [("RayJob", "rayClusterSpec"), ("RayService", "rayClusterConfig")]
)
def test_so_do_those_of_a_ray_cluster_that_is_made_for_another(
    lab: Lab, kind: str, of: str
) -> None:
    worker = {"groupName": "gpu", "replicas": 2, "template": lab.template(gpus=8)}
    head = {"template": lab.template(gpus=0, queue="")}
    lab.make(kind, "tune", {of: {"headGroupSpec": head, "workerGroupSpecs": [worker]}})
    assert len(lab.gated()) == 3
    lab.turn()
    work = lab.only()
    assert str(Origin.objects.get()) == f"{kind} tune"
    assert {each.name: each.count for each in work.pod_sets.all()} == {"headgroup": 1, "gpu": 2}
    lab.until_state(work, State.SUCCEEDED)


def test_a_tf_job_starts_its_chief_and_its_workers_together(lab: Lab) -> None:
    roles = {
        "Chief": {"replicas": 1, "template": lab.template()},
        "Worker": {"replicas": 2, "template": lab.template()},
        "Evaluator": {"replicas": 1, "template": lab.template(gpus=0)},
    }
    lab.make("TFJob", "resnet", {"tfReplicaSpecs": roles})
    assert lab.gated() == {"resnet-chief-0", "resnet-worker-0", "resnet-worker-1"}
    lab.turn()
    work = lab.only()
    assert {each.name: each.count for each in work.pod_sets.all()} == {"chief": 1, "worker": 2}
    lab.until_state(work, State.SUCCEEDED)


def test_each_group_of_a_leader_worker_set_is_a_gang(lab: Lab) -> None:
    template = lab.template(gpus=4)
    del template["spec"]["restartPolicy"]
    asked = {"size": 3, "workerTemplate": template}
    lab.make("LeaderWorkerSet", "llm", {"replicas": 2, "leaderWorkerTemplate": asked})
    assert len(lab.gated()) == 6
    lab.turn()
    works = [origin.workload for origin in Origin.objects.select_related("workload")]
    assert sorted(work.name for work in works) == ["llm-0", "llm-1"]
    for work in works:
        sets = {each.name: each.count for each in work.pod_sets.all()}
        assert sets == {"leader": 1, "worker": 2}
        lab.until_state(work, State.RUNNING)
    assert lab.gated() == set()


def test_all_jobs_of_a_job_set_start_together(lab: Lab) -> None:
    job = {"parallelism": 2, "completions": 2, "template": lab.template(gpus=4)}
    jobs = [
        {"name": "slice", "replicas": 2, "template": {"spec": job}},
        {"name": "eval", "replicas": 1, "template": {"spec": {"template": lab.template(gpus=1)}}},
    ]
    lab.make("JobSet", "llama", {"replicatedJobs": jobs})
    eventually("all pods are there", lambda: len(lab.gated()) == 5)
    lab.turn()
    work = lab.only()
    assert str(Origin.objects.get()) == "JobSet llama"
    assert {each.name: each.count for each in work.pod_sets.all()} == {"slice": 4, "eval": 1}
    lab.until_state(work, State.SUCCEEDED)


def test_all_nodes_of_a_train_job_start_together(lab: Lab) -> None:
    template = lab.template(gpus=8)
    [container] = template["spec"]["containers"]
    asked = {
        "runtimeRef": {"name": "torch-distributed"},
        "trainer": {
            "numNodes": 3,
            "image": container["image"],
            "command": container["command"],
            "resourcesPerNode": container["resources"],
        },
        "podTemplateOverrides": [
            {
                "targetJobs": [{"name": "node"}],
                "metadata": template["metadata"],
                "spec": {"securityContext": template["spec"]["securityContext"]},
            }
        ],
    }
    lab.make("TrainJob", "llama", asked)
    eventually("all pods are there", lambda: len(lab.gated()) == 3)
    lab.turn()
    work = lab.only()
    assert str(Origin.objects.get()) == "TrainJob llama"
    assert {each.name: each.count for each in work.pod_sets.all()} == {"node": 3}
    lab.until_state(work, State.SUCCEEDED)


def test_an_mpi_job_starts_its_workers_together_and_waits_for_no_launcher(lab: Lab) -> None:
    roles = {
        "Launcher": {"replicas": 1, "template": lab.template(gpus=0)},
        "Worker": {"replicas": 2, "template": lab.template(gpus=8)},
    }
    lab.make("MPIJob", "hpl", {"mpiReplicaSpecs": roles})
    assert lab.gated() == {"hpl-worker-0", "hpl-worker-1"}
    lab.turn()
    work = lab.only()
    assert [(each.name, each.count) for each in work.pod_sets.all()] == [("worker", 2)]
    lab.until_state(work, State.SUCCEEDED)
