"""Providers that speak SAML 2.0, as the environment has them."""

from dataclasses import dataclass
from importlib.util import find_spec

from cryptography import x509
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
_SHORTEST_RSA_BITS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Saml(Provider):
    """A SAML identity provider. An attribute is called as assertions have it, by its Name.

    `certificates` are in PEM, those with which it signs: two while it changes from one to the
    other. `subject_attribute` tells who somebody is for ever; "" is the NameID.
    `groups_attribute` tells a person's groups; "" is a provider that tells none.
    """

    entity_id: str
    sso_url: str
    certificates: tuple[str, ...]
    subject_attribute: str = ""
    username_attribute: str = "urn:oid:0.9.2342.19200300.100.1.1"  # uid
    name_attribute: str = "urn:oid:2.16.840.1.113730.3.1.241"  # displayName
    email_attribute: str = "urn:oid:0.9.2342.19200300.100.1.3"  # mail
    groups_attribute: str = ""

    @property
    def tells_groups(self) -> bool:
        return bool(self.groups_attribute)


def providers(setting: str) -> dict[str, Provider]:
    """By name, as `{"uni": {"entity_id": …, "sso_url": …, "certificates": …}}` in JSON tells."""
    found: dict[str, Provider] = {
        each.name: _provider(each) for each in told(setting, needed=_NEEDED, known=_KNOWN)
    }
    if found and find_spec("onelogin") is None:
        raise ImproperlyConfigured(
            f"{setting} needs packages that are not here: install Berth with its extra saml."
        )
    return found


def _provider(of: Told) -> Saml:
    values = dict(of.values)
    if (url := web_address(values["sso_url"])) is None or url.fragment:
        raise ImproperlyConfigured(
            f"{of.where}: sso_url has to be a URL with https: where the provider takes questions"
            " by HTTP-Redirect."
        )
    certificates = _certificates(of.where, values.pop("certificates"))
    return Saml(name=of.name, certificates=certificates, **values)


def _certificates(where: str, pem: str) -> tuple[str, ...]:
    try:
        found = x509.load_pem_x509_certificates(pem.encode())
        keys = [each.public_key() for each in found]
    except ValueError:
        raise ImproperlyConfigured(
            f"{where}: certificates has to be PEM, one or more, each from"
            " -----BEGIN CERTIFICATE----- on."
        ) from None
    for key in keys:
        long = isinstance(key, rsa.RSAPublicKey) and key.key_size >= _SHORTEST_RSA_BITS
        if not (long or isinstance(key, ec.EllipticCurvePublicKey)):
            raise ImproperlyConfigured(
                f"{where}: a certificate's key has to be RSA of {_SHORTEST_RSA_BITS} bits or more,"
                " or of an elliptic curve."
            )
    return tuple(each.public_bytes(Encoding.PEM).decode() for each in found)
