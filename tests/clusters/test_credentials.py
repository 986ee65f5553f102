"""Credentials of clusters, from where they are sealed to where they are opened."""

import base64
import runpy
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from clusters import credential, registry
from clusters.credential import BadCredential
from clusters.models import Cluster, ClusterCredential
from clusters.sealing import PrivateKey
from clusters.services import credentials
from clusters.web.serializers import CredentialIn
from controlplane.audit.models import AuditEvent
from controlplane.kernel.clock import now
from controlplane.kernel.errors import Invalid, Unavailable
from controlplane.settings import base
from tests import factories
from tests.clusters.authority import Authority
from tests.simulation import Simulator, simulator, store_credential

__all__ = ["simulator"]

pytestmark = [pytest.mark.part_simulator, pytest.mark.django_db]

TOKEN = "canary-token-0123456789"
SERVER = "https://north.example.test:6443"


@pytest.fixture
def north() -> Cluster:
    return factories.cluster("north")


def stored(cluster: Cluster, **fields: Any) -> ClusterCredential:  # Any: as `credential.read`
    store_credential(cluster, **{"server": SERVER, "token": TOKEN} | fields)
    return ClusterCredential.objects.get(cluster=cluster)


def refusal(name: str = "north") -> str:
    with pytest.raises(BadCredential) as raised:
        registry.connect(name)
    assert "canary" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("metrics", [{"server": "https://m.example.test", "token": TOKEN}, None])
def test_what_measures_is_noted_of_one_stored_before_that_was_kept(
    north: Cluster, metrics: dict[str, str] | None
) -> None:
    stored(north, metrics=metrics)
    ClusterCredential.objects.update(metrics_server=None)
    registry.connect("north").close()
    kept = ClusterCredential.objects.get().metrics_server
    assert kept == (metrics["server"] if metrics else "")


def test_a_cluster_is_reached_by_what_was_sealed(north: Cluster, simulator: Simulator) -> None:
    simulator.store_credential(north)
    port = registry.connect("north")
    assert port.version().simulated
    port.close()


def test_a_cluster_without_one_says_what_to_do(north: Cluster) -> None:
    said = "Cluster 'north' has no credential yet: store one on its page, or by the API."
    assert refusal() == said


def test_the_row_shows_what_is_no_secret_and_hides_the_rest(north: Cluster) -> None:
    certificate = Authority().issue("berth")
    pair = {"certificate": certificate.certificate_pem, "key": certificate.key_pem}
    by_certificate = credential.read({"server": SERVER, **pair})
    credentials.store(
        cluster=north, credential=by_certificate, actor="user:1", actor_name="oz", at=now()
    )
    row = ClusterCredential.objects.get()
    assert (row.host, row.version, row.set_by) == ("north.example.test:6443", 1, "oz")
    assert row.expires_at == by_certificate.expires_at
    assert certificate.key_pem.split()[4].encode() not in bytes(row.sealed)
    assert registry.opened(row) == by_certificate.written()


def test_the_audit_tells_who_replaced_it_and_nothing_of_what(north: Cluster) -> None:
    stored(north)
    stored(north, server="https://south.example.test")
    first, second = AuditEvent.objects.filter(action="cluster.credential").order_by("at", "id")
    assert (first.before, first.after["version"]) == ({}, 1)
    assert second.before == first.after
    assert set(second.after) == {"host", "key_id", "version", "metrics_server", "expires_at"}
    assert second.after["host"] == "south.example.test"
    assert (second.target_id, second.actor) == (north.id, "system:test")


def test_a_kubeconfig_and_what_measures_have_one_limit() -> None:
    text = (Path(__file__).parent / "kubeconfigs/accepted/k3s.yaml").read_text()
    ca = Authority().pem
    measures = {"server": "https://prometheus.example.test", "token": TOKEN, "ca": ca}
    assert credentials.read({"kubeconfig": text, "metrics": measures}).metrics is not None
    measures["ca"] = ca * (credential.LARGEST // len(ca) + 1)
    with pytest.raises(Invalid, match="it is larger than 64 KiB"):
        credentials.read({"kubeconfig": text, "metrics": measures})


def test_the_lines_of_a_kubeconfig_are_counted_as_they_were_sent() -> None:
    taken = CredentialIn(data={"kubeconfig": "\n\n  \nnothing: of it\n"})
    assert taken.is_valid()
    with pytest.raises(Invalid, match="line 4, the top: an unknown field"):
        credentials.read(taken.validated_data)


def test_one_that_has_ended_is_not_stored(north: Cluster) -> None:
    certificate = Authority().issue("berth", ends_at=now().replace(microsecond=0))
    pair = {"certificate": certificate.certificate_pem, "key": certificate.key_pem}
    with pytest.raises(Invalid, match="The credential ended at 20"):
        credentials.store(
            cluster=north,
            credential=credential.read({"server": SERVER, **pair}),
            actor="user:1",
            actor_name="oz",
            at=now() + timedelta(seconds=1),
        )
    assert not ClusterCredential.objects.exists()


def test_who_has_the_public_key_alone_can_store_and_not_connect(
    north: Cluster, settings: Settings
) -> None:
    settings.BERTH_OPEN_KEYS = []
    row = stored(north)
    assert refusal() == (
        f"The credential of cluster north can't be opened: this process has no key {row.key_id}."
    )


def test_who_has_no_key_at_all_stores_nothing(north: Cluster, settings: Settings) -> None:
    settings.BERTH_SEAL_KEY = b""
    with pytest.raises(Unavailable, match="BERTH_SEAL_KEY is not set"):
        stored(north)


def test_rows_that_are_exchanged_in_the_database_open_nothing(north: Cluster) -> None:
    stored(north)
    south = factories.cluster("south")
    stored(south, server="https://evil.example.test")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_clustercredential t SET sealed = o.sealed"
            " FROM clusters_clustercredential o WHERE o.cluster_id <> t.cluster_id"
        )
    assert "it was changed, or sealed for another place" in refusal()


def test_a_port_is_kept_until_the_credential_is_another(north: Cluster) -> None:
    stored(north)
    ports = registry.Ports(connect_timeout_s=1, read_timeout_s=1)
    first = ports.of("north")
    assert ports.of("north") is first
    ClusterCredential.objects.update(set_by="nobody")
    assert ports.of("north") is first
    stored(north, token="another-token-0123456789")
    second = ports.of("north")
    assert second is not first
    assert ports.of("north") is second


def test_keys_are_replaced_while_all_goes_on(north: Cluster, settings: Settings) -> None:
    [old] = settings.BERTH_OPEN_KEYS
    first = stored(north)
    new = PrivateKey.fresh()
    # 1: whoever opens is told both keys. 2: whoever seals is told the new one.
    settings.BERTH_OPEN_KEYS = [new.raw, old]
    settings.BERTH_SEAL_KEY = new.public.raw
    registry.connect("north").close()
    out = StringIO()
    call_command("reseal_credentials", stdout=out)
    assert out.getvalue() == "1 sealed anew; all are under the key in use.\n"
    row = ClusterCredential.objects.get()
    assert row.key_id == new.public.id.hex() != first.key_id
    assert row.version == first.version
    # 3: the old one is dropped.
    settings.BERTH_OPEN_KEYS = [new.raw]
    registry.connect("north").close()
    call_command("reseal_credentials", stdout=out)
    assert out.getvalue().endswith("\n0 sealed anew; all are under the key in use.\n")


def test_nothing_is_sealed_anew_that_nobody_here_could_open(
    north: Cluster, settings: Settings
) -> None:
    stored(north)
    settings.BERTH_SEAL_KEY = PrivateKey.fresh().public.raw
    with pytest.raises(CommandError, match="is of none of the keys in BERTH_OPEN_KEYS"):
        call_command("reseal_credentials")
    fresh = PrivateKey.fresh()
    settings.BERTH_SEAL_KEY, settings.BERTH_OPEN_KEYS = fresh.public.raw, [fresh.raw]
    with pytest.raises(CommandError, match="cluster north can't be opened: this process has no"):
        call_command("reseal_credentials")
    assert "PrivateKey" not in refusal()


@pytest.mark.parametrize("name", ["BERTH_SEAL_KEY", "BERTH_OPEN_KEYS"])
@pytest.mark.parametrize("text", ["canary", "Y2FuYXJ5", "=" * 44, "Y2FuYXJ5" * 11])
def test_a_setting_that_is_no_key_is_refused_at_the_start_and_not_quoted(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ImproperlyConfigured, match=f"{name} has to hold at most 1") as raised:
        runpy.run_path(base.__file__)
    assert text not in str(raised.value)


def test_several_keys_open_and_one_seals(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [PrivateKey.fresh().raw for _ in range(2)]
    text = " ".join(base64.b64encode(key).decode() for key in keys)
    monkeypatch.setenv("BERTH_OPEN_KEYS", text)
    assert runpy.run_path(base.__file__)["BERTH_OPEN_KEYS"] == keys
    monkeypatch.setenv("BERTH_SEAL_KEY", text)
    with pytest.raises(ImproperlyConfigured, match="at most 1"):
        runpy.run_path(base.__file__)
