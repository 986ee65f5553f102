"""`cluster_manifest --catch-url`: when the webhook answers wrongly, or not at all."""

from collections.abc import Iterable, Iterator
from wsgiref.types import StartResponse, WSGIEnvironment

import orjson
import pytest

from clusters.adapters.kubernetes import manifests
from tests.kube.api import MERGE_PATCH, Answer
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.hooking import serving
from tests.kube.work import Work, catches
from tests.waiting import eventually


def allows_all(environ: WSGIEnvironment, begin: StartResponse) -> Iterable[bytes]:
    """Who stands in Berth's place, and leaves pods as they are."""
    review = orjson.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    review["response"] = {"uid": review.pop("request")["uid"], "allowed": True}
    begin("200 OK", [("Content-Type", "application/json")])
    return [orjson.dumps(review)]


PODS: dict[str, tuple[int, dict[str, str]]] = {
    "with a device": (1, {}),
    "with the queue label": (0, {"queue": ""}),
    "with neither": (0, {}),
}


@pytest.fixture
def forged(control_plane: ControlPlane) -> Iterator[None]:
    with serving(allows_all) as hook, catches(control_plane, hook=hook):
        yield


@pytest.fixture
def away(control_plane: ControlPlane) -> Iterator[None]:
    with serving() as hook:
        pass
    with catches(control_plane, hook=hook):
        yield


@pytest.fixture
def work(control_plane: ControlPlane, namespace: str) -> Work:
    work = Work(control_plane, namespace)
    ours = manifests.namespace(namespace, names=NAMES)
    control_plane.admin.do("PATCH", work.path, ours, content_type=MERGE_PATCH)
    return work


def tried(work: Work, which: str) -> Answer:
    """Once it is refused there: the API server takes a moment to see what was applied."""
    gpus, labels = PODS[which]

    def make() -> Answer:
        pod = work.pod("train", gpus=gpus, **labels)
        return work.editor.call("POST", f"{work.path}/pods?dryRun=All", pod)

    eventually("an editor is known there", lambda: "cannot create" not in str(make().body))
    eventually("it is refused", lambda: make().status >= 400)
    return make()


@pytest.mark.parametrize("which", PODS)
def test_a_pod_that_was_left_as_it_was_is_refused(work: Work, forged: None, which: str) -> None:
    answer = tried(work, which)
    assert (answer.status, answer.body.get("reason")) == (403, "Forbidden"), answer.body
    assert "from berth-catch" in answer.body["message"]


@pytest.mark.parametrize("which", PODS)
def test_while_nobody_answers_no_pod_is_made(work: Work, away: None, which: str) -> None:
    answer = tried(work, which)
    assert answer.status == 500, answer.body
    assert "failed calling webhook" in answer.body["message"]


def test_and_what_berth_itself_runs_from_is_made_all_the_same(work: Work, away: None) -> None:
    assert tried(work, "with neither").status == 500
    pods = f"/api/v1/namespaces/{NAMES.home}/pods?dryRun=All"
    answer = work.kube.admin.call("POST", pods, work.pod("web", gpus=0))
    assert answer.status == 201, answer.body
