"""With what Berth signs in to a cluster: checked when it is read, plain only in memory. Pure.

What must not live here: how it is kept (sealing.py, services/credentials.py) and how a kubeconfig
is read (kubeconfig.py). No text of an error holds a value.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import urlsplit

import orjson
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from urllib3.util import parse_url

LARGEST = 64 * 1024
LONGEST_QUERY = 4096
LONGEST_SERVER = 2048
_LONGEST_HOST = 260  # of a name, 253, and a port
_TOKEN = re.compile(r"[\x21-\x7e]{16,16384}")
_SMALLEST_RSA = 2048  # in bits
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_FIELDS = {"server", "ca", "token", "certificate", "key", "metrics"}
_METRICS_FIELDS = {"server", "ca", "token", "query"}


class BadCredential(ValueError):
    """It can't be used: `where` is the field, "" for all of it, and `why` what would be right."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}" if where else why)
        self.where = where
        self.why = why


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """PEM: the certificate with its chain, and its private key without a password."""

    certificate_pem: str
    key_pem: str = field(repr=False)

    @classmethod
    def read(
        cls, certificate: object, key: object, *, where: tuple[str, str] = ("certificate", "key")
    ) -> Self:
        """Raises BadCredential; `where` names the two."""
        chain = _certificates(certificate, where[0])
        private = _private_key(key, where[1])
        form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        try:
            certified = chain[0].public_key().public_bytes(*form)
        except (ValueError, UnsupportedAlgorithm):
            certified = b""
        if certified != private.public_key().public_bytes(*form):
            raise BadCredential(where[1], "it is not the key of the certificate")
        plain = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return cls(_pem(chain), plain.decode())


@dataclass(frozen=True, slots=True)
class Metrics:
    """An API that answers as Prometheus does; `query` None asks what DCGM exporter tells."""

    server: str
    ca_pem: str | None
    token: str = field(repr=False)
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Credential:
    """`identity` is a bearer token or a client certificate; without `ca_pem` the system's
    authorities are trusted. `metrics` is who tells how much devices are used, if anybody."""

    server: str
    ca_pem: str | None
    identity: str | ClientCertificate = field(repr=False)
    metrics: Metrics | None = None

    @property
    def host(self) -> str:
        """With its port, where it has one: no secret."""
        return urlsplit(self.server).netloc

    @property
    def expires_at(self) -> datetime | None:
        """By its certificate, or by what a token that is a JWT says of itself."""
        if isinstance(self.identity, str):
            return _expiry(self.identity)
        [first, *_] = x509.load_pem_x509_certificates(self.identity.certificate_pem.encode())
        return first.not_valid_after_utc

    def written(self) -> bytes:
        """JSON that `read` reads."""
        fields: dict[str, object] = {"server": self.server}
        if self.ca_pem is not None:
            fields["ca"] = self.ca_pem
        if isinstance(self.identity, str):
            fields["token"] = self.identity
        else:
            fields["certificate"] = self.identity.certificate_pem
            fields["key"] = self.identity.key_pem
        if (asked := self.metrics) is not None:
            told = {"server": asked.server, "ca": asked.ca_pem, "token": asked.token}
            told["query"] = asked.query
            fields["metrics"] = {name: value for name, value in told.items() if value is not None}
        return orjson.dumps(fields)


def read(fields: Mapping[str, Any]) -> Credential:  # Any: JSON values
    """The credential of {"server", "ca", "token" or "certificate" and "key", "metrics": {"server",
    "ca", "token", "query"}}; both "ca", "metrics" and "query" may be left out.

    Raises BadCredential.
    """
    _check_known(fields, _FIELDS, "")
    by_certificate = "certificate" in fields or "key" in fields
    if by_certificate and "token" in fields:
        raise BadCredential("token", "a token or a client certificate is wanted, not both")
    found = Credential(
        server=server(fields.get("server")),
        ca_pem=ca(fields.get("ca")),
        identity=(
            ClientCertificate.read(fields.get("certificate"), fields.get("key"))
            if by_certificate
            else token(fields.get("token"))
        ),
        metrics=metrics(fields.get("metrics")),
    )
    check_size(found)
    return found


def check_size(found: Credential) -> None:
    """Of all that is sealed, what measures included. Raises BadCredential."""
    if len(found.written()) > LARGEST:
        raise BadCredential("", f"it is larger than {LARGEST // 1024} KiB")


def metrics(fields: object) -> Metrics | None:
    """As of `read`."""
    if fields is None:
        return None
    if not isinstance(fields, Mapping):
        raise BadCredential("metrics", "an object is wanted")
    _check_known(fields, _METRICS_FIELDS, "metrics.")
    query = fields.get("query")
    if query is not None and not (
        isinstance(query, str) and query.strip() and len(query) <= LONGEST_QUERY
    ):
        raise BadCredential("metrics.query", f"1 to {LONGEST_QUERY} characters are wanted")
    return Metrics(
        server=server(fields.get("server"), "metrics.server"),
        ca_pem=ca(fields.get("ca"), "metrics.ca"),
        token=token(fields.get("token"), "metrics.token"),
        query=query,
    )


def server(text: object, where: str = "server") -> str:
    """An https URL of host, port and path; plain http is for loopback alone.

    Its host has to be one for the client too, which knows fewer of them than Python does.
    """
    if not isinstance(text, str) or not text.isprintable() or set(" \\") & set(text):
        raise BadCredential(where, "an https URL is wanted")
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port
        parse_url(text)
    except ValueError:  # as urllib3's is one
        raise BadCredential(where, "an https URL is wanted") from None
    if not host or len(text) > LONGEST_SERVER or len(url.netloc) > _LONGEST_HOST:
        raise BadCredential(where, "an https URL is wanted")
    if "@" in url.netloc or url.query or url.fragment:
        raise BadCredential(where, "a URL of no more than a host, a port and a path is wanted")
    if url.scheme != "https" and not (url.scheme == "http" and host in _LOOPBACK):
        raise BadCredential(where, "only https is taken (plain http is for loopback only)")
    return f"{url.scheme}{text[len(url.scheme) :].rstrip('/')}"


def token(text: object, where: str = "token") -> str:
    if not isinstance(text, str) or not _TOKEN.fullmatch(text):
        raise BadCredential(where, "a token of at least 16 characters without blanks is wanted")
    return text


def ca(pem: object, where: str = "ca") -> str | None:
    """Certificates alone, whatever stood beside them."""
    return None if pem is None else _pem(_certificates(pem, where))


def _check_known(fields: Mapping[str, Any], known: set[str], below: str) -> None:  # Any: JSON
    """An unknown name is not quoted: a secret may have slipped into its place."""
    if set(fields) - known:
        raise BadCredential(
            below.rstrip("."), f"an unknown field; known are {', '.join(sorted(known))}"
        )


def _certificates(pem: object, where: str) -> list[x509.Certificate]:
    if isinstance(pem, str):
        try:
            return x509.load_pem_x509_certificates(pem.encode())
        except ValueError:
            pass
    raise BadCredential(where, "a certificate in PEM is wanted")


def _pem(certificates: list[x509.Certificate]) -> str:
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def _private_key(
    pem: object, where: str
) -> rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey:
    wanted = "a private key in PEM, of RSA, EC or Ed25519 and without a password, is wanted"
    if not isinstance(pem, str):
        raise BadCredential(where, wanted)
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it has a password
        raise BadCredential(where, wanted) from None
    if not isinstance(
        key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
    ):
        raise BadCredential(where, wanted)
    if (isinstance(key, rsa.RSAPrivateKey) and key.key_size < _SMALLEST_RSA) or (
        isinstance(key, ec.EllipticCurvePrivateKey) and not isinstance(key.curve, _CURVES)
    ):
        raise BadCredential(
            where,
            f"a key of RSA with at least {_SMALLEST_RSA} bits, of P-256, P-384 or P-521, or of "
            "Ed25519 is wanted",
        )
    return key


def _expiry(token: str) -> datetime | None:
    """The `exp` of a JWT (RFC 7519), which its cluster checks; None of any other token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return datetime.fromtimestamp(claims["exp"], UTC)
    except (binascii.Error, ValueError, TypeError, KeyError, OverflowError, OSError):
        return None
