"""The providers that people sign in by, as the environment has them."""

import json
import os
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
_NEEDED = {"issuer", "client_id", "client_secret"}
_KNOWN = {*_NEEDED, "label", "groups_claim", "scopes"}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An OpenID Connect provider, and what Berth is to it.

    `groups_claim` names the claim that tells a person's groups; "" is a provider that tells none.
    """

    name: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    label: str
    groups_claim: str = ""
    scopes: str = "openid profile email"


def providers(name: str) -> dict[str, Provider]:
    """By name, as `{"acme": {"issuer": …, "client_id": …, "client_secret": …}}` in JSON tells, in
    its order. What is said of a bad one repeats no value, as one of them is a secret."""
    text = os.environ.get(name, "")
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        raise ImproperlyConfigured(f"{name} has to be JSON: an object by provider.") from None
    if not isinstance(found, dict):
        raise ImproperlyConfigured(f"{name} has to be an object by provider.")
    return {key: _provider(name, key, told) for key, told in found.items()}


def _provider(setting: str, name: str, told: object) -> Provider:
    where = f"{setting}, {name!a}"
    if not _NAME.fullmatch(name):
        raise ImproperlyConfigured(f"{where}: a name has 1 to 20 of a-z, 0-9 and -.")
    if not isinstance(told, dict) or not all(isinstance(each, str) for each in told.values()):
        raise ImproperlyConfigured(f"{where} has to be an object of texts.")
    if unknown := told.keys() - _KNOWN:
        known = ", ".join(sorted(_KNOWN))
        raise ImproperlyConfigured(f"{where} has {min(unknown)[:40]!a}; known: {known}.")
    if missing := {each for each in _NEEDED if not told.get(each)}:
        raise ImproperlyConfigured(f"{where} lacks {', '.join(sorted(missing))}.")
    if "openid" not in told.get("scopes", "openid").split():
        raise ImproperlyConfigured(f"{where}: scopes has to name openid.")
    _check_issuer(where, told["issuer"])
    return Provider(**{"name": name, "label": name.capitalize(), **told})


def _check_issuer(where: str, issuer: str) -> None:
    try:
        url = urlsplit(issuer)
        host = url.hostname
    except ValueError:
        url, host = urlsplit(""), None
    plain = url.scheme == "http" and host in _LOOPBACK
    if not host or url.query or url.fragment or not (url.scheme == "https" or plain):
        raise ImproperlyConfigured(
            f"{where}: issuer has to be a URL with https, without a query: what the provider calls"
            " itself."
        )
