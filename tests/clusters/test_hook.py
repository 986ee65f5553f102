"""What Berth answers a cluster that asks how a pod of others is to be made; that it does what the
policy does, tests/kube/test_catching.py shows."""

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.core.management import CommandError
from django.test import Client
from pytest_django import Settings

from clusters.adapters.kubernetes.hook import MOST, PATH
from tests.clusters.test_cluster_manifest import printed

type Json = dict[str, Any]

GATE = {"name": "berth.dev/placed"}
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
GPU = {"limits": {"nvidia.com/gpu": "1"}}


def review(pod: object, **fields: object) -> Json:
    request = {
        "uid": "705ab4f5",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "userInfo": {"username": "ada"},
        "object": pod,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"} | {
        "request": request | fields
    }


def pod(*containers: Json, **metadata: Json) -> Json:
    return {"metadata": {"name": "train", **metadata}, "spec": {"containers": list(containers)}}


def patch(pod: Json) -> list[Json]:
    answer = Client(enforce_csrf_checks=True).post(
        PATH, review(pod), content_type="application/json"
    )
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert body["kind"] == "AdmissionReview"
    assert (body["response"]["uid"], body["response"]["allowed"]) == ("705ab4f5", True)
    written = body["response"].get("patch")
    return orjson.loads(base64.b64decode(written)) if written else []


def test_a_pod_with_a_device_is_gated_and_says_who_made_it() -> None:
    assert patch(pod({"name": "main", "resources": GPU})) == [
        {"op": "add", "path": "/metadata/labels", "value": {"berth.dev/caught": "berth"}},
        {"op": "add", "path": "/metadata/annotations", "value": {"berth.dev/created-by": "ada"}},
        {"op": "add", "path": "/spec/schedulingGates", "value": [GATE]},
    ]


def test_so_is_one_that_claims_devices() -> None:
    claiming = pod({"name": "main", "env": [VOID]})
    claiming["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    assert {"op": "add", "path": "/spec/schedulingGates", "value": [GATE]} in patch(claiming)


def test_what_is_there_stays_and_what_is_forged_is_put_right() -> None:
    said = {"berth.dev/created-by": "root", "note": "a/b"}
    made = pod({"name": "main", "resources": GPU}, labels={"team": "a"}, annotations=said)
    made["spec"]["schedulingGates"] = [{"name": "example.test/storage"}]
    assert patch(made) == [
        {"op": "add", "path": "/metadata/labels/berth.dev~1caught", "value": "berth"},
        {"op": "add", "path": "/metadata/annotations/berth.dev~1created-by", "value": "ada"},
        {"op": "add", "path": "/spec/schedulingGates/-", "value": GATE},
    ]


def test_asked_again_it_changes_nothing_more() -> None:
    made = pod(
        {"name": "main", "resources": GPU},
        {"name": "logs", "env": [VOID]},
        labels={"berth.dev/caught": "berth", "berth.dev/queue": ""},
        annotations={"berth.dev/created-by": "ada"},
    )
    made["spec"]["schedulingGates"] = [GATE]
    assert patch(made) == []


BROKEN: dict[str, object] = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": [],
    "no request": {},
    "no pod": review(None),
    "another kind": review(pod(), kind={"kind": "Node"}),
    "a kind that is none": review(pod(), kind="Pod"),
    "an uid that is none": review(pod(), uid=7),
    "nobody": review(pod(), userInfo={}),
    "a maker that is no name": review(pod({"name": "main"}), userInfo={"username": ["ada"]}),
    "a name that is none": review(pod({"name": "main"}), userInfo={"username": ""}),
    "containers that are none": review({"metadata": {}, "spec": {"containers": 7}}),
    "a container that is none": review(pod("main")),  # type: ignore[arg-type]
    "resources that are none": review(pod({"resources": {"limits": 7}})),
    "resources by number": review({"metadata": {}, "spec": {"containers": [{"resources": [7]}]}}),
    "labels that are none": review(pod({"resources": GPU}, labels=[7])),  # type: ignore[arg-type]
    "gates that are none": review(
        {"metadata": {}, "spec": {"schedulingGates": 7, "containers": [{"resources": GPU}]}}
    ),
    "no spec": review({"metadata": {}}),
    "more containers than are answered": review(pod(*[{}] * (MOST + 1))),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_no_review_of_a_pod_is_refused_with_a_sentence(what: str) -> None:
    asked = BROKEN[what]
    body = asked if isinstance(asked, bytes) else orjson.dumps(asked)
    answer = Client(enforce_csrf_checks=True).post(PATH, body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.content.decode().startswith(("It is ", "It says "))


def test_only_a_post_is_answered() -> None:
    assert Client().get(PATH).status_code == 405


@pytest.mark.parametrize(
    "url",
    [
        "http://berth.example.org",
        "berth.example.org",
        "https://berth.example.org/path",
        "https://ada@berth.example.org",
        "https://berth.example.org?x",
        "https://",
        "",
        "https://...",
        "https://berth.example.org-",
        "https://berth.example.org:65536",
    ],
)
def test_an_address_that_a_cluster_could_not_ask_is_refused(url: str) -> None:
    with pytest.raises(CommandError, match="is no address that a cluster may ask"):
        printed("--catch-url", url)


def test_an_address_at_which_berth_does_not_answer_is_refused(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["berth.example.org", "[::1]"]
    assert "caBundle" not in printed("--catch-url", "https://berth.example.org:8443")
    assert "https://[::1]:8443/" in printed("--catch-url", "https://[::1]:8443")
    with pytest.raises(CommandError, match="is not among BERTH_ALLOWED_HOSTS"):
        printed("--catch-url", "https://other.example.org:8443")


@pytest.mark.parametrize("text", ["", "-----BEGIN PRIVATE KEY-----"])
def test_an_authority_that_is_no_certificate_is_refused(
    settings: Settings, tmp_path: Path, text: str
) -> None:
    settings.ALLOWED_HOSTS = ["berth.example.org"]
    file = tmp_path / "ca.pem"
    file.write_text(text)
    with pytest.raises(CommandError, match="--catch-ca: a certificate in PEM is wanted"):
        printed("--catch-url", "https://berth.example.org", "--catch-ca", str(file))


def test_an_authority_without_an_address_or_without_a_file_is_refused() -> None:
    with pytest.raises(CommandError, match="of an address that --catch-url names"):
        printed("--catch-ca", "ca.pem")
    with pytest.raises(CommandError, match="No such file"):
        printed("--catch-url", "https://berth.example.org", "--catch-ca", "nowhere.pem")
