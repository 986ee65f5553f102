"""Providers that speak SAML 2.0, as the environment has them."""

import re
from dataclasses import dataclass
from importlib.util import find_spec

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from django.core.exceptions import ImproperlyConfigured

from controlplane.settings.providers import Provider, Told, told, web_address

_NEEDED = {"entity_id", "sso_url", "certificates"}
_KNOWN = {
    *_NEEDED,
    "label",
    "subject_attribute",
    "username_attribute",
    "name_attribute",
    "email_attribute",
    "groups_attribute",
}
_SHORTEST_RSA_BITS, _SHORTEST_CURVE_BITS = 2048, 256
_PLAIN = re.compile(r"https?://[A-Za-z0-9._:\[\]-]{2,}([/?][!-~]*)?")
"""What python3-saml takes for a URL, and some of what a browser does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saml(Provider):
    """A SAML identity provider. An attribute is called as assertions have it, by its Name.

    `certificates` are in PEM, those with which it signs: two while it changes from one to the
    other. `subject_attribute` tells who somebody is for ever; "" is the NameID.
    `email_attribute` is one that the provider verifies, as what is mailed goes there; "" where it
    verifies none. `groups_attribute` tells a person's groups; "" is a provider that tells none.
    """

    entity_id: str
    sso_url: str
    certificates: tuple[str, ...]
    subject_attribute: str = ""
    username_attribute: str = "urn:oid:0.9.2342.19200300.100.1.1"  # uid
    name_attribute: str = "urn:oid:2.16.840.1.113730.3.1.241"  # displayName
    email_attribute: str = ""
    groups_attribute: str = ""

    @property
    def tells_groups(self) -> bool:
        return bool(self.groups_attribute)


def providers(setting: str, *, here: str) -> dict[str, Provider]:
    """By name, as `{"uni": {"entity_id": …, "sso_url": …, "certificates": …}}` in JSON tells.
    `here` is Berth's own address, by which they know it."""
    found: dict[str, Provider] = {
        each.name: _provider(each) for each in told(setting, needed=_NEEDED, known=_KNOWN)
    }
    if found and find_spec("onelogin") is None:
        raise ImproperlyConfigured(
            f"{setting} needs packages that are not here: install Berth with its extra saml."
        )
    if found and not here:
        raise ImproperlyConfigured(
            f"{setting} needs BERTH_PUBLIC_URL: a provider says for whom an answer is, and knows"
            " Berth by it."
        )
    return found


def _provider(of: Told) -> Saml:
    values = dict(of.values)
    url = web_address(values["sso_url"])
    if url is None or url.fragment or not _PLAIN.fullmatch(values["sso_url"]):
        raise ImproperlyConfigured(
            f"{of.where}: sso_url has to be a URL with https, in ASCII and without a password:"
            " where the provider takes questions by HTTP-Redirect."
        )
    certificates = _certificates(of.where, values.pop("certificates"))
    return Saml(name=of.name, certificates=certificates, **values)


def _certificates(where: str, pem: str) -> tuple[str, ...]:
    try:
        found = x509.load_pem_x509_certificates(pem.encode())
        keys = [each.public_key() for each in found]
    except (ValueError, UnsupportedAlgorithm):
        raise ImproperlyConfigured(
            f"{where}: certificates has to be PEM, one or more, each from"
            " -----BEGIN CERTIFICATE----- on."
        ) from None
    if not all(_is_strong(key) for key in keys):
        raise ImproperlyConfigured(
            f"{where}: a certificate's key has to be RSA of {_SHORTEST_RSA_BITS} bits or more, or"
            f" of an elliptic curve of {_SHORTEST_CURVE_BITS}."
        )
    return tuple(each.public_bytes(Encoding.PEM).decode() for each in found)


def _is_strong(key: object) -> bool:
    if isinstance(key, rsa.RSAPublicKey):
        return key.key_size >= _SHORTEST_RSA_BITS
    return isinstance(key, ec.EllipticCurvePublicKey) and key.key_size >= _SHORTEST_CURVE_BITS
