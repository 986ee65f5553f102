"""A real cluster is connected as README.md says: print, apply, sign in, register, store, probe."""

import base64
import json
from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings
from rest_framework.test import APIClient

from clusters.models import ClusterProbe
from clusters.port import Verdict
from scheduler import tasks
from tenants.models import User
from tests.conftest import Cast
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.manifests import apply, parsed
from tests.waiting import eventually

type Api = Callable[[User | None], APIClient]
type Connect = Callable[[Json], None]


def output(command: str, *arguments: str) -> str:
    said = StringIO()
    call_command(command, *arguments, stdout=said)
    return said.getvalue()


def kubeconfig(kube: ControlPlane, *, user: str) -> str:
    """Of somebody whom a client certificate names, as kubectl writes it."""
    identity = kube.clients.issue(user)
    cluster = {"server": kube.server, "certificate-authority-data": encoded(kube.ca_pem)}
    who = {
        "client-certificate-data": encoded(identity.certificate_pem),
        "client-key-data": encoded(identity.key_pem),
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": who}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }
    )


def encoded(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()


@pytest.fixture
def connect(api: Api, cast: Cast) -> Connect:
    """Register the cluster north, and store that credential."""

    def connect(credential: Json) -> None:
        operator = api(cast.oz)
        made = operator.post("/api/v1/clusters", {"name": "north"}, format="json")
        url = f"/api/v1/clusters/{made.json()['id']}/credential"
        assert operator.put(url, credential, format="json").status_code == 200

    return connect


def test_a_cluster_is_connected_by_a_token_of_the_account(
    control_plane: ControlPlane, connect: Connect
) -> None:
    apply(control_plane.admin, parsed(output("cluster_manifest")))
    token = control_plane.token_of(NAMES)
    connect({"server": control_plane.server, "ca": control_plane.ca_pem, "token": token})
    assert "it knows Berth as system:serviceaccount:berth-system:berth" in probed()
    [probe] = ClusterProbe.objects.all()  # which was asked for with the credential
    tasks.probe_cluster(probe_id=str(probe.id))
    probe.refresh_from_db()
    assert [step for step in probe.told if step.verdict is Verdict.FAILS] == []
    assert probe.verdict in {Verdict.WORKS, Verdict.WARNING}


def test_a_cluster_is_connected_by_a_kubeconfig_with_a_client_certificate(
    control_plane: ControlPlane, connect: Connect, settings: Settings
) -> None:
    settings.BERTH_INSTALLATION = "lab"
    apply(control_plane.admin, parsed(output("cluster_manifest", "--user", "fleet")))
    connect({"kubeconfig": kubeconfig(control_plane, user="fleet")})
    assert "it knows Berth as fleet" in probed()


def probed() -> str:
    """What is said once the server has seen the role: the command fails before."""

    def said() -> str | None:
        try:
            return output("probe_cluster", "north")
        except CommandError:
            return None

    return eventually("each step is good", said)
