"""What people see of work that was made in a cluster."""

from django.test import Client
from rest_framework.test import APIClient

from scheduler.models import CaughtPod, Origin
from tests import factories
from tests.conftest import Cast
from tests.factories import AT


def origin_of(cast: Cast) -> Origin:
    return Origin.objects.create(
        workload=factories.workload(cast.detection, cast.ada, [factories.flavor()]),
        cluster=factories.cluster(),
        key="job-1",
        api_version="kubeflow.org/v1",
        kind="PyTorchJob",
        name="bert",
        uid="job-1",
        creator="grace",
    )


def test_a_workload_says_where_it_comes_from(cast: Cast, client: Client) -> None:
    of = origin_of(cast)
    client.force_login(cast.ada)
    page = client.get(f"/workloads/{of.workload_id}").content.decode()
    whose = f"PyTorchJob {cast.detection.namespace}/bert, its pods by grace"
    assert f"made in {of.cluster.name} as {whose}" in " ".join(page.split())


def test_the_api_says_it_too(cast: Cast) -> None:
    of = origin_of(cast)
    api = APIClient()
    api.force_login(cast.ada)
    told = api.get(f"/api/v1/workloads/{of.workload_id}").json()["origin"]
    assert told == {
        "cluster": of.cluster.name,
        "namespace": cast.detection.namespace,
        "api_version": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "name": "bert",
        "creator": "grace",
    }


def test_the_queue_page_tells_what_is_not_in_the_queue_and_why(cast: Cast, client: Client) -> None:
    CaughtPod.objects.create(
        cluster=factories.cluster(),
        uid="u1",
        project=cast.detection,
        name="bert-worker-7",
        said={},
        refusal="It asks for other devices.",
        seen_at=AT,
    )
    for who, sees in ((cast.ada, True), (cast.cleo, False)):
        client.force_login(who)
        page = client.get("/queue").content.decode()
        assert ("It asks for other devices." in page) is sees
