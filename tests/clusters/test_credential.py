"""Credentials: what is accepted, and that a refusal says why and never what is in them."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from clusters import credential, kubeconfig
from clusters.adapters.kubernetes.client import Client
from clusters.credential import BadCredential, ClientCertificate
from controlplane.kernel.addresses import Allowed

TOKEN = "canary-token-0123456789"
K3S = kubeconfig.parse((Path(__file__).parent / "kubeconfigs/accepted/k3s.yaml").read_text())
assert isinstance(K3S.identity, ClientCertificate)
CERTIFICATE, KEY = K3S.identity.certificate_pem, K3S.identity.key_pem
SERVER = "https://north.example.test:6443"
METRICS = {"server": "https://prometheus.example.test", "token": TOKEN}


def read(**fields: Any) -> credential.Credential:  # Any: JSON values
    """With a server and a token, where `fields` say nothing else; None leaves one out."""
    given = {"server": SERVER, "token": TOKEN} | fields
    return credential.read({name: value for name, value in given.items() if value is not None})


def refusal(**fields: Any) -> str:  # Any: as above
    with pytest.raises(BadCredential) as raised:
        read(**fields)
    assert "canary" not in str(raised.value)
    assert raised.value.__cause__ is None
    return str(raised.value)


@pytest.mark.parametrize(
    ("server", "host"),
    [
        ("https://north.example.test", "north.example.test"),
        ("https://north.example.test:6443/k8s/clusters/c-1/", "north.example.test:6443"),
        ("https://[2001:db8::1]:6443", "[2001:db8::1]:6443"),
        ("http://127.0.0.1:8001", "127.0.0.1:8001"),
        ("http://localhost:8001", "localhost:8001"),
        ("http://[::1]:8001", "[::1]:8001"),
        ("HTTPS://north.example.test", "north.example.test"),
        ("Http://127.0.0.1:8001/", "127.0.0.1:8001"),
        ("https://b\u00fccher.example", "b\u00fccher.example"),
    ],
)
def test_https_and_loopback_are_accepted(server: str, host: str) -> None:
    """Accepted is what a client can be made of; nothing is connected to for that."""
    found = read(server=server)
    assert found.host == host
    scheme, _, rest = server.rstrip("/").partition(":")
    assert found.server == f"{scheme.lower()}:{rest}"
    Client(server=found.server, identity=found.identity, allowed=Allowed()).close()


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("http://north.example.test", "only https"),
        ("http://127.0.0.1.example.test", "only https"),
        ("ftp://north.example.test", "only https"),
        ("file:///etc/passwd", "an https URL is wanted"),
        ("north.example.test", "an https URL is wanted"),
        ("https://user:canary@north.example.test", "no more than a host"),
        ("https://:@north.example.test", "no more than a host"),
        ("https://@north.example.test", "no more than a host"),
        ("https://\u2603.example", "an https URL is wanted"),
        ("https://\u2177.example", "an https URL is wanted"),
        ("https://[v1.a]", "an https URL is wanted"),
        ("https://north.example.test?x=1", "no more than a host"),
        ("https://north.example.test:port", "an https URL is wanted"),
        ("https://north.example.test/\r\nX: y", "an https URL is wanted"),
        ("https://north.example.test\\evil", "an https URL is wanted"),
        ("https://[::1", "an https URL is wanted"),
        (f"https://{'x' * 300}", "an https URL is wanted"),
        ("", "an https URL is wanted"),
        (["https://x"], "an https URL is wanted"),
        (None, "an https URL is wanted"),
    ],
)
def test_any_other_server_is_refused(server: object, why: str) -> None:
    said = refusal(server=server)
    assert said.startswith("server: ")
    assert why in said
    assert f"metrics.{said}" == refusal(metrics={**METRICS, "server": server})


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"exec": {"command": "sh"}}, "an unknown field; known are ca, certificate, key, metrics"),
        ({TOKEN: ""}, "an unknown field"),
        ({"token": ""}, "token: a token of at least 16"),
        ({"token": "canary"}, "token: a token of at least 16"),
        ({"token": f"{TOKEN}\n"}, "token: a token"),
        ({"token": f"{TOKEN}\r\nX-Evil: 1"}, "token: a token"),
        ({"token": None}, "token: a token"),
        ({"token": 7}, "token: a token"),
        ({"ca": "/etc/ssl/ca.pem"}, "ca: a certificate in PEM"),
        ({"ca": KEY}, "ca: a certificate in PEM"),
        ({"ca": 7}, "ca: a certificate in PEM"),
        ({"ca": "\ud800"}, "ca: a certificate in PEM"),
        ({"ca": CERTIFICATE * 100}, "it is larger than 64 KiB"),
        ({"certificate": CERTIFICATE, "key": KEY}, "token: a token or a client certificate"),
        ({"token": None, "certificate": CERTIFICATE}, "key: a private key in PEM"),
        ({"token": None, "key": KEY}, "certificate: a certificate in PEM"),
        ({"token": None, "certificate": KEY, "key": KEY}, "certificate: a certificate in PEM"),
        ({"token": None, "certificate": CERTIFICATE, "key": CERTIFICATE}, "key: a private key"),
        ({"metrics": [SERVER]}, "metrics: an object is wanted"),
        ({"metrics": {}}, "metrics.server: an https URL"),
        ({"metrics": {**METRICS, "token": "short"}}, "metrics.token: a token of at least 16"),
        ({"metrics": {**METRICS, "ca": "/etc/ca.pem"}}, "metrics.ca: a certificate in PEM"),
        ({"metrics": {**METRICS, "query": ""}}, "metrics.query: 1 to 4096 characters"),
        ({"metrics": {**METRICS, "query": "x" * 4097}}, "metrics.query: 1 to 4096 characters"),
        ({"metrics": {**METRICS, "query": 7}}, "metrics.query: 1 to 4096 characters"),
        ({"metrics": {**METRICS, "proxy": "http://x"}}, "metrics: an unknown field"),
    ],
)
def test_what_is_not_a_plain_credential_is_refused(fields: dict[str, object], why: str) -> None:
    assert refusal(**fields).startswith(why)


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (pem(rsa.generate_private_key(65537, 1024)), "key: a key of RSA with at least 2048 bits"),  # noqa: S505
        (pem(ec.generate_private_key(ec.SECP256K1())), "key: a key of RSA with at least 2048"),
        (pem(ec.generate_private_key(ec.SECP192R1())), "key: a key of RSA with at least 2048"),
        (pem(rsa.generate_private_key(65537, 2048)), "key: it is not the key of the certificate"),
        (pem(ec.generate_private_key(ec.SECP256R1())), "key: it is not the key of the"),
        (pem(ec.generate_private_key(ec.SECP384R1())), "key: it is not the key of the"),
        (pem(ec.generate_private_key(ec.SECP521R1())), "key: it is not the key of the"),
        (pem(ed25519.Ed25519PrivateKey.generate()), "key: it is not the key of the"),
    ],
    ids=["rsa-1024", "k-256", "p-192", "rsa-2048", "p-256", "p-384", "p-521", "ed25519"],
)
def test_a_key_that_is_too_weak_is_refused_before_its_certificate_is_looked_at(
    key: str, why: str
) -> None:
    assert refusal(token=None, certificate=CERTIFICATE, key=key).startswith(why)


def test_of_an_authority_only_certificates_are_kept() -> None:
    found = read(ca=f"{TOKEN}\n{CERTIFICATE}{KEY}")
    assert found.ca_pem == CERTIFICATE


def test_who_measures_is_read_and_written_too() -> None:
    found = read(metrics={**METRICS, "ca": CERTIFICATE, "query": "gpu_use"})
    assert credential.read(orjson.loads(found.written())) == found
    assert TOKEN not in repr(found)


@pytest.mark.parametrize(
    "token",
    [
        "a.b.c" * 5,
        "aaaaaaaaaaaa.e30.aaaa",
        "aaaaaaaaaa.eyJleHAiOiJ4In0.aaa",
        "aaaaaaa.eyJleHAiOjFlOTl9.aaa",
    ],
)
def test_a_token_that_tells_no_time_has_no_end(token: str) -> None:
    assert read(token=token).expires_at is None
