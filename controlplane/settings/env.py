"""Readers of environment variables. Each says in one sentence what is wrong with a bad value."""

import base64
import os
import re
from ipaddress import ip_network
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from controlplane.kernel.networks import LINKS_AND_METADATA, Network, lies_in

_IPV4_MAPPED = ip_network("::ffff:0:0/96")
_LEVEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_OBJECT = re.compile(
    r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
)


def words(name: str, default: str) -> list[str]:
    """A list separated by spaces or commas."""
    return os.environ.get(name, default).replace(",", " ").split()


def integer(name: str, default: int, *, low: int = 1, high: int = 10**9) -> int:
    """A whole number from `low`, which is not negative, to `high`."""
    text = os.environ.get(name, str(default))
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise ImproperlyConfigured(
            f"{name} has to be a whole number from {low} to {high}, not {text!r}."
        )
    return int(text)


def levels(name: str, default: str) -> dict[str, str]:
    """Level names with the node label that each is told by, as `rack=example.com/rack`, in order.

    At most 8, separated by spaces or commas.
    """
    found: dict[str, str] = {}
    for word in words(name, default):
        level, equals, label = word.partition("=")
        if not (equals and label and _LEVEL.fullmatch(level)) or level in found:
            raise ImproperlyConfigured(
                f"{name} has to list levels as name=label, each name once and of 1 to 40 of a-z,"
                f" 0-9 and -, the outermost first; {word!r} is not so."
            )
        found[level] = label
    if len(found) > 8:
        raise ImproperlyConfigured(f"{name} may have at most 8 levels, not {len(found)}.")
    return found


def keys(name: str, *, most: int) -> list[bytes]:
    """At most so many X25519 keys in base64, separated by spaces or commas, as 32 bytes each."""
    found: list[bytes] = []
    for word in words(name, ""):
        try:
            found.append(base64.b64decode(word, validate=True))
        except ValueError:
            found.append(b"")
    if len(found) > most or any(len(key) != 32 for key in found):
        raise ImproperlyConfigured(
            f"{name} has to hold at most {most} of what `manage.py sealing_key` prints for it."
        )
    return found


def networks(name: str, default: str = "") -> tuple[Network, ...]:
    """Networks as CIDRs, such as `10.20.0.0/16 2001:db8::/48`, separated by spaces or commas."""
    found = []
    for word in words(name, default):
        try:
            found.append(ip_network(word))
        except ValueError as error:
            raise ImproperlyConfigured(
                f"{name} has to list networks such as 10.20.0.0/16; {word!r} is none: {error}."
            ) from None
    return tuple(found)


def reachable(listed: tuple[Network, ...]) -> tuple[Network, ...]:
    """The same networks, each of which a cluster takes for its pods to reach: no link nor cloud's
    metadata by itself, and none of IPv4 that is written as IPv6."""
    for network in listed:
        if lies_in(network, _IPV4_MAPPED):
            why = "write it as IPv4, as 10.20.0.0/16"
        elif any(lies_in(network, never) for never in LINKS_AND_METADATA):
            why = "there a cloud tells a machine's credentials"
        else:
            continue
        raise ImproperlyConfigured(
            f"Pods may not reach {network}, take it off BERTH_EGRESS_NETWORKS: {why}."
        )
    return listed


def hosts(database: str, *urls: str) -> tuple[str, ...]:
    """The hosts of a database, several with `,` and any of them a socket's folder, as libpq has
    them, and of URLs, each of which may list several with `;`, as Celery's do."""
    named = [urlsplit(url).hostname for several in urls for url in several.split(";")]
    listed = [host.strip() for host in database.split(",")]
    found = [*named, *(host for host in listed if not host.startswith("/"))]
    return tuple(dict.fromkeys(host for host in found if host))


def mailers(name: str) -> dict[str, Any]:  # Any: Django's settings shape
    """Django's MAILERS for one URL: `smtp://user:password@host:587` (STARTTLS), `smtps://…:465`
    (TLS from the beginning), `smtp+plain://…:25` for a relay on one's own machine, `file:///dir`,
    a file a message, or `console:`. None without one."""
    text = os.environ.get(name, "")
    url = urlsplit(text)
    backend = "django.core.mail.backends."
    if not text:
        return {}
    if url.scheme == "console":
        return {"default": {"BACKEND": f"{backend}console.EmailBackend"}}
    if url.scheme == "file" and url.path:
        into = {"file_path": unquote(url.path)}
        return {"default": {"BACKEND": f"{backend}filebased.EmailBackend", "OPTIONS": into}}
    if url.scheme not in {"smtp", "smtps", "smtp+plain"} or not url.hostname:
        raise ImproperlyConfigured(  # without its value, which may hold a password
            f"{name} has to be smtp://, smtps:// or smtp+plain:// with a host, file:/// with a"
            " folder, or console:."
        )
    options = {
        "host": url.hostname,
        "port": url.port or {"smtp": 587, "smtps": 465}.get(url.scheme, 25),
        "username": unquote(url.username or ""),
        "password": unquote(url.password or ""),
        "use_tls": url.scheme == "smtp",
        "use_ssl": url.scheme == "smtps",
        "timeout": 5,
    }
    return {"default": {"BACKEND": f"{backend}smtp.EmailBackend", "OPTIONS": options}}


def origin(name: str) -> str:
    """Where a web server is, as `https://berth.example`, with nothing behind; "" without one."""
    text = os.environ.get(name, "").rstrip("/")
    url = urlsplit(text)
    if text and (url.scheme not in {"http", "https"} or url.netloc != text.partition("://")[2]):
        raise ImproperlyConfigured(f"{name} has to be as https://berth.example, not {text!r}.")
    return text


def choice(name: str, default: str, *others: str) -> str:
    """One of these words."""
    word = os.environ.get(name, default)
    if word not in {default, *others}:
        known = ", ".join((default, *others))
        raise ImproperlyConfigured(f"{name} has to be one of {known}, not {word!r}.")
    return word


def namespaced(name: str, default: str) -> str:
    """An object of a cluster, as namespace/name."""
    text = os.environ.get(name, default)
    if not _OBJECT.fullmatch(text):
        raise ImproperlyConfigured(f"{name} has to be namespace/name, not {text!r}.")
    return text


def flag(name: str, *, default: bool) -> bool:
    """`1` or `0`."""
    text = os.environ.get(name, "1" if default else "0")
    if text not in {"0", "1"}:
        raise ImproperlyConfigured(f"{name} has to be 1 or 0, not {text!r}.")
    return text == "1"


def database(name: str, default: str) -> dict[str, Any]:  # Any: Django's settings shape
    """Django's settings for a `postgresql://user:password@host:port/name?host=/socket/dir` URL."""
    url = urlsplit(os.environ.get(name, default))
    if url.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(
            f"{name} has to start with postgresql://, not {url.scheme!r}: none else will do."
        )
    query = dict(parse_qsl(url.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(url.path.lstrip("/")),
        "USER": unquote(url.username or query.pop("user", "")),
        "PASSWORD": unquote(url.password or ""),
        "HOST": url.hostname or query.pop("host", ""),
        "PORT": str(url.port or query.pop("port", "")),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            **query,
            "prepare_threshold": 5,
            "pool": {"min_size": 1, "max_size": 8, "timeout": 10},
        },
    }
