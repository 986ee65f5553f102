"""One message to an address that somebody named: signed, to a public address alone, without
following where it points, and within a time as a whole.

What must not live here: which message, and who may name an address.
"""

import hashlib
import hmac
import http.client
import ssl
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from urllib3.exceptions import HTTPError, NameResolutionError

from controlplane.kernel import text
from controlplane.kernel.addresses import AddressNotAllowed, Allowed
from controlplane.kernel.deadlines import GuardedConnection, GuardedTlsConnection, Watchdog

MAX_URL = 1000
SIGNATURE = "Berth-Signature"
_SILENCE_S = 5
LIMIT_S = 10
_watchdog = Watchdog(LIMIT_S)


class Unsent(Exception):
    """Nothing says that it was taken. The message tells nothing of what was answered but its
    status."""


@dataclass(frozen=True, slots=True)
class Target:
    """An address, and by what is signed that goes there; "" is not at all."""

    url: str = field(repr=False)
    secret: str = field(repr=False)


def url_fault(url: str) -> str:
    """What is wrong with an address, in one sentence, "" if nothing is. Where it leads is looked
    at when something is sent."""
    if len(url) > MAX_URL:
        return f"At most {MAX_URL} characters."
    if text.fault(url) or not url.isascii() or " " in url:
        return "An address has no spaces, and only ASCII characters."
    schemes = ("https", "http") if settings.BERTH_WEBHOOK_HTTP else ("https",)
    try:
        found = urlsplit(url)
        port = found.port
    except ValueError:
        return "That is no address: https://host/path is wanted."
    if found.scheme not in schemes or not found.hostname or port == 0:
        return f"That is no address: {schemes[0]}://host/path is wanted."
    if "@" in found.netloc or found.fragment:
        return "An address with a user, a password or a # is not taken."
    return ""


def host_of(url: str) -> str:
    """What of it is no secret."""
    return urlsplit(url).netloc


def signature(secret: str, body: bytes, *, at_s: int) -> str:
    """Of the moment, in seconds since 1970, and the body, so that a message that somebody caught
    is not good for ever: HMAC-SHA256 of `<seconds>.<body>`."""
    signed = f"{at_s}.".encode() + body
    made = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"t={at_s},v1={made}"


def post(target: Target, body: bytes, *, headers: dict[str, str], at_s: int) -> None:
    """Send JSON there. Raises Unsent for all but an answer that says it was taken (2xx), whose
    body is not read."""
    if url_fault(target.url):  # as of one that was stored when http was permitted
        raise Unsent("The address is not one that is permitted now.")
    url = urlsplit(target.url)
    sent = {"Content-Type": "application/json", "User-Agent": "berth", **headers}
    if target.secret:
        sent[SIGNATURE] = signature(target.secret, body, at_s=at_s)
    status = _exchange(url, body, sent)
    if 300 <= status < 400:
        raise Unsent(f"It answered {status}: where it points is not followed.")
    if not 200 <= status < 300:
        raise Unsent(f"It answered {status}.")


def _exchange(url: SplitResult, body: bytes, headers: dict[str, str]) -> int:
    """The status of the answer. Raises Unsent."""
    make = GuardedTlsConnection if url.scheme == "https" else GuardedConnection
    connection = make(
        url.hostname, url.port, timeout=_SILENCE_S, watchdog=_watchdog, allowed=_allowed()
    )
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    try:
        with _watchdog.watching(connection):
            connection.request("POST", target, body=body, headers=headers, preload_content=False)
            return connection.getresponse().status
    except AddressNotAllowed as error:
        raise Unsent(str(error)) from None
    except NameResolutionError:
        raise Unsent(f"{url.hostname} has no address.") from None
    except ssl.SSLError as error:
        raise Unsent(f"TLS with {url.hostname} failed ({type(error).__name__}).") from None
    except (HTTPError, http.client.HTTPException, OSError) as error:
        told = f"{url.hostname} gave no answer in time, or none at all ({type(error).__name__})."
        raise Unsent(told) from None
    finally:
        connection.close()


def _allowed() -> Allowed:
    return Allowed(
        settings.BERTH_WEBHOOK_NETWORKS,
        own_hosts=settings.OWN_HOSTS,
        public_too=True,
        setting="BERTH_WEBHOOK_NETWORKS",
    )
