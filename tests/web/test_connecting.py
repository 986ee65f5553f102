"""Connecting a cluster on its pages: step by step, hostile input, no secret comes back."""

import re
import tempfile
from html import unescape
from pathlib import Path
from typing import Any, Never

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.files import uploadedfile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from clusters import credential
from clusters.models import Cluster, ClusterCredential, ClusterProbe
from scheduler import tasks
from tests.clusters.authority import Authority
from tests.conftest import Unchanged
from tests.simulation import Simulator, simulator, store_credential
from tests.web.connecting import (
    HOSTILE,
    KUBECONFIGS,
    REGISTER,
    SECRET,
    SERVER,
    Answer,
    errors,
    north,
    oz,
    text,
    url,
)

__all__ = ["north", "oz", "simulator"]

# Step 1.


def test_a_cluster_is_registered_and_the_manifest_comes_next(oz: Client) -> None:
    answer = oz.post(REGISTER, {"name": "north", "region": "Warsaw", "server": f"{SERVER}/"})
    assert (answer.status_code, answer["Location"]) == (303, "/clusters/north/manifest")
    made = Cluster.objects.get()
    assert (made.name, made.region, made.server) == ("north", "Warsaw", SERVER)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "North", "1 to 40 of a-z"),
        ("name", "<script>alert(1)</script>", "1 to 40 of a-z"),
        ("name", "", "required"),
        ("region", "War\u202esaw", "U+202E"),
        ("server", "http://north.example.test", "only https"),
        ("server", "north", "an https URL"),
        ("server", f"https://oz:{SECRET}@north.example.test", "no more than a host"),
        ("server", "", "required"),
    ],
)
def test_bad_input_is_told_at_its_field_and_the_rest_stays(
    oz: Client, nothing_stored: Unchanged, field: str, value: str, said: str
) -> None:
    posted = {"name": "north", "region": "Warsaw", "server": SERVER} | {field: value}
    with nothing_stored():
        answer = oz.post(REGISTER, posted)
    assert answer.status_code == 422
    assert list(errors(answer)) == [field]
    assert said in errors(answer)[field][0]
    page = answer.content.decode()
    assert "<script>alert" not in page
    assert SECRET not in page
    for other in set(posted) - {field}:
        assert f'value="{posted[other]}"' in page


def test_a_name_that_is_taken_is_told(oz: Client, north: Cluster) -> None:
    answer = oz.post(REGISTER, {"name": "north", "server": SERVER})
    assert answer.status_code == 409
    assert "a cluster 'north' already" in errors(answer)["name"][0]


# Step 2.


def test_the_manifest_is_shown_with_what_to_run(oz: Client, north: Cluster) -> None:
    page = text(oz.get(url("cluster-manifest-page")))
    assert "kind: ValidatingAdmissionPolicy" in page
    assert "kubectl create token berth --namespace berth-system --duration 720h" in page
    assert 'href="/api/v1/cluster-manifest?token_hours=720" download="berth-cluster.yaml"' in page
    assert "Signed in as <b>oz</b>" in page


def test_it_may_be_of_a_user_whom_the_cluster_knows(oz: Client, north: Cluster) -> None:
    query = {"sign_in": "user", "user": "fleet", "token_hours": "24"}
    page = text(oz.get(url("cluster-manifest-page"), query))
    assert "kind: User" in page
    assert "kubectl create token" not in page
    assert 'href="/api/v1/cluster-manifest?user=fleet"' in page
    assert "Signed in as <b>oz</b>" in page


def test_it_has_the_parts_that_are_ticked(oz: Client, north: Cluster) -> None:
    query = {"sign_in": "account", "token_hours": "24", "parts": ["mig", "logs"]}
    page = text(oz.get(url("cluster-manifest-page"), query))
    assert all(f"name: berth-{part}" in page for part in ("mig", "logs"))
    assert all(f"name: berth-{part}" not in page for part in ("dra", "catch", "autoscale"))
    assert "cluster-manifest?token_hours=24&parts=mig%2Clogs" in unescape(page)
    ticked = re.findall(r'name="parts" value="(\w+)"[^>]* checked', page)
    assert ticked == ["mig", "logs"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"sign_in": "account", "token_hours": "1", "parts": "root"}, "parts"),
        ({"sign_in": "user", "user": "", "token_hours": "24"}, "user"),
        ({"sign_in": "user", "user": "<b>'", "token_hours": "24"}, "user"),
        ({"sign_in": "account", "token_hours": "0"}, "token_hours"),
        ({"sign_in": "nobody", "token_hours": "1"}, "sign_in"),
        ({"sign_in": "account", "token_hours": "1", "x": "1"}, "__all__"),
    ],
)
def test_a_manifest_of_nobody_is_not_shown(
    oz: Client, north: Cluster, query: dict[str, str], field: str
) -> None:
    answer = oz.get(url("cluster-manifest-page"), query)
    assert answer.status_code == 422
    assert list(errors(answer)) == [field]
    assert "kind: ClusterRole" not in answer.content.decode()


# Step 3.


def stored(oz: Client, **fields: Any) -> Answer:  # Any: as a form takes them
    answer = oz.post(url("cluster-credential-page"), {"server": SERVER} | fields)
    assert "canary" not in answer.content.decode()
    return answer


def test_the_server_is_filled_in_as_it_was_registered(oz: Client, north: Cluster) -> None:
    assert f'value="{SERVER}"' in oz.get(url("cluster-credential-page")).content.decode()
    store_credential(north, server=SERVER, token=SECRET)
    Cluster.objects.update(server="")  # as one that was registered before it had one
    assert f'value="{SERVER}"' in oz.get(url("cluster-credential-page")).content.decode()


def test_a_token_is_stored_and_probed_at_once(
    oz: Client, north: Cluster, simulator: Simulator
) -> None:
    answer = stored(oz, server=simulator.server, token=simulator.token)
    assert (answer.status_code, answer["Location"]) == (303, "/clusters/north/connection")
    kept = ClusterCredential.objects.get()
    assert (kept.set_by, f"http://{kept.host}") == ("oz", simulator.server)
    tasks.probe_cluster(probe_id=str(ClusterProbe.objects.get().id))
    page = text(oz.get(answer["Location"]))
    assert "steps work" in page
    assert "it knows Berth as" in page


@pytest.mark.parametrize("name", ["k3s", "kind", "eks-bound-token"])
@pytest.mark.parametrize("as_file", [False, True])
def test_a_kubeconfig_is_pasted_or_sent_as_a_file(
    oz: Client, north: Cluster, name: str, as_file: bool
) -> None:
    config = (KUBECONFIGS / f"accepted/{name}.yaml").read_text()
    if as_file:
        answer = stored(oz, kubeconfig_file=SimpleUploadedFile("config", config.encode()))
    else:
        answer = stored(oz, kubeconfig=config.replace("\n", "\r\n"))
    assert answer.status_code == 303
    assert ClusterCredential.objects.get().version == 1


@pytest.mark.parametrize("file", HOSTILE, ids=lambda file: file.stem)
def test_no_hostile_kubeconfig_comes_in(
    oz: Client, north: Cluster, nothing_stored: Unchanged, file: Path
) -> None:
    sent = SimpleUploadedFile("config", file.read_bytes())
    with nothing_stored():
        answer = stored(oz, kubeconfig_file=sent)
    assert answer.status_code == 422
    assert list(errors(answer)) in (["kubeconfig_file"], ["token"])  # token: an empty one


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({}, "token", "A token is wanted, or a kubeconfig"),
        ({"token": "canary"}, "token", "at least 16 characters"),
        ({"token": SECRET, "kubeconfig": f"users: [{SECRET}"}, "kubeconfig", "One way"),
        ({"kubeconfig": f"users: [{SECRET}"}, "kubeconfig", "not YAML"),
        ({"kubeconfig": f"\n\ntoken: {SECRET}"}, "kubeconfig", "line 3"),
        ({"token": SECRET, "server": "http://north.example.test"}, "server", "only https"),
        ({"token": SECRET, "server": f"https://a:{SECRET}@north"}, "server", "no more than"),
        ({"token": SECRET, "ca": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}"}, "ca", "in PEM"),
        ({"token": SECRET, "metrics_token": SECRET}, "metrics_server", "an https URL"),
        (
            {"token": SECRET, "metrics_server": SERVER, "metrics_token": "canary"},
            "metrics_token",
            "at least 16",
        ),
        (
            {"token": SECRET, "metrics_query": "x\u202e"},
            "metrics_query",
            "not accepted",
        ),
        ({"token": SECRET, "as": SECRET}, "__all__", "no such field"),
        ({"token": SECRET, SECRET: "as"}, "__all__", "no such field"),
        ({"server": SECRET, "token": SECRET}, "server", "an https URL"),
        ({"server": f"https://north/?token={SECRET}", "token": SECRET}, "server", "no more than"),
        ({"server": f"https://north/#{SECRET}", "token": SECRET}, "server", "no more than"),
        ({"metrics_server": SECRET, "token": SECRET}, "metrics_server", "an https URL"),
        ({"metrics_query": SECRET, "token": "short"}, "token", "at least 16"),
    ],
)
def test_what_is_none_is_told_at_its_field_and_no_secret_comes_back(
    oz: Client, north: Cluster, nothing_stored: Unchanged,
    fields: dict[str, str], field: str, said: str,
) -> None:  # fmt: skip
    with nothing_stored():
        answer = stored(oz, **fields)
    assert answer.status_code == 422
    assert list(errors(answer)) == [field]
    assert said in errors(answer)[field][0]
    assert SECRET not in str([session.get_decoded() for session in Session.objects.all()])


def test_what_is_no_secret_is_kept(oz: Client, north: Cluster) -> None:
    ca = Authority().pem
    posted = {"ca": ca, "metrics_server": "https://metrics.example.test"}
    page = stored(oz, token="short", **posted).content.decode()
    for value in (SERVER, ca.splitlines()[1], "https://metrics.example.test"):
        assert value in page


@pytest.mark.parametrize(
    ("beside", "field", "said"),
    [
        ({"server": "https://other.example.test"}, "server", "says where it is"),
        ({"ca": Authority().pem}, "ca", "has the authority"),
    ],
)
def test_nothing_beside_a_kubeconfig_is_dropped_without_a_word(
    oz: Client, north: Cluster, nothing_stored: Unchanged,
    beside: dict[str, str], field: str, said: str,
) -> None:  # fmt: skip
    config = (KUBECONFIGS / "accepted/k3s.yaml").read_text()
    with nothing_stored():
        answer = stored(oz, kubeconfig=config, **beside)
    assert answer.status_code == 422
    assert list(errors(answer)) == [field]
    assert said in errors(answer)[field][0]


PROMETHEUS = "https://metrics.example.test/prometheus"


@pytest.fixture
def measured(north: Cluster) -> None:
    store_credential(
        north, server=SERVER, token=SECRET, metrics={"server": PROMETHEUS, "token": SECRET}
    )


def test_what_measures_the_cluster_is_filled_in_and_its_token_asked_for_again(
    oz: Client, measured: None
) -> None:
    assert PROMETHEUS in text(oz.get(url("cluster-connection")))
    page = oz.get(url("cluster-credential-page")).content.decode()
    assert f'value="{PROMETHEUS}"' in page
    assert 'name="unmeasured"' in page
    answer = stored(oz, token=SECRET, metrics_server=PROMETHEUS)
    assert list(errors(answer)) == ["metrics_token"]
    again = stored(oz, token=SECRET, metrics_server=PROMETHEUS, metrics_token=SECRET)
    assert again.status_code == 303
    kept = ClusterCredential.objects.get()
    assert (kept.version, kept.metrics_server) == (2, PROMETHEUS)


def test_nor_is_that_dropped_without_a_word(
    oz: Client, measured: None, nothing_stored: Unchanged
) -> None:
    with nothing_stored():
        emptied = stored(oz, token=SECRET)
        both = stored(oz, token=SECRET, metrics_server=PROMETHEUS, metrics_token=SECRET,
                      unmeasured="on")  # fmt: skip
    assert f"{PROMETHEUS} measures the cluster by now" in errors(emptied)["metrics_server"][0]
    assert "one is wanted" in errors(both)["unmeasured"][0]


@pytest.mark.parametrize("server", [PROMETHEUS, ""])
def test_it_is_said_to_be_measured_no_longer(oz: Client, measured: None, server: str) -> None:
    answer = stored(oz, token=SECRET, metrics_server=server, unmeasured="on")
    assert answer.status_code == 303
    assert ClusterCredential.objects.get().metrics_server == ""
    assert "GPU use is asked of</dt><dd>nobody</dd>" in text(oz.get(answer["Location"]))
    page = oz.get(url("cluster-credential-page")).content.decode()
    assert 'name="unmeasured"' not in page


def test_whether_it_is_measured_is_asked_where_nobody_knows(
    oz: Client, measured: None, nothing_stored: Unchanged
) -> None:
    ClusterCredential.objects.update(metrics_server=None)  # as one that was stored before
    assert "not known: stored before" in text(oz.get(url("cluster-connection")))
    assert "Whether something measures it" in text(oz.get(url("cluster-credential-page")))
    with nothing_stored():
        answer = stored(oz, token=SECRET)
    assert "not known here" in errors(answer)["metrics_server"][0]
    assert stored(oz, token=SECRET, unmeasured="on").status_code == 303


def test_a_file_has_a_limit_and_is_text(oz: Client, north: Cluster) -> None:
    large = SimpleUploadedFile("config", b"#" * (credential.LARGEST + 1))
    answer = stored(oz, kubeconfig_file=large)
    assert errors(answer) == {"kubeconfig_file": ["It has more than 64 KiB."]}
    answer = stored(oz, kubeconfig_file=SimpleUploadedFile("config", b"\xff\xfe"))
    assert errors(answer) == {"kubeconfig_file": ["It is not UTF-8."]}


def test_no_file_is_written_down_on_the_way(
    oz: Client, north: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> Never:
        raise AssertionError("a temporary file")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refused)
    monkeypatch.setattr(uploadedfile.TemporaryUploadedFile, "__init__", refused)
    large = SimpleUploadedFile("config", f"token: {SECRET}\n".encode() * 200_000)
    assert large.size is not None
    assert large.size > settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert stored(oz, kubeconfig_file=large).status_code == 422


def test_without_a_key_to_seal_with_nothing_is_stored(
    oz: Client, north: Cluster, settings: Settings, nothing_stored: Unchanged
) -> None:
    settings.BERTH_SEAL_KEY = b""
    with nothing_stored():
        answer = stored(oz, token=SECRET)
    assert answer.status_code == 503
    assert "BERTH_SEAL_KEY is not set" in answer.content.decode()
