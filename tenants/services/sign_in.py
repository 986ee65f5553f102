"""How often one may try to sign in: by name, so that nobody guesses a password, and by address, so
that nobody tries one password on many names. Counted in PostgreSQL, over all processes.

A name has few tries from one address and many more from all: nobody locks another out from one
place, and many places together still guess no password.
"""

import unicodedata
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address

from django.db import connection
from django.utils.crypto import salted_hmac

from tenants.models import SignInTally, User

WINDOW = timedelta(minutes=15)
PER_NAME_HERE = 10
PER_NAME = 100
PER_ADDRESS = 50
"""Tries in a window; one that succeeds is given back. An address may be a whole institute's."""
_SWEPT = 100
"""Old rows that one try clears away: more than the three it makes."""

_SWEEP = """
DELETE FROM tenants_signintally WHERE key IN (
    SELECT key FROM tenants_signintally WHERE since <= %s LIMIT %s FOR UPDATE SKIP LOCKED
)
"""
_COUNT = """
INSERT INTO tenants_signintally AS t (key, count, since) VALUES (%(key)s, 1, %(at)s)
ON CONFLICT (key) DO UPDATE SET
    count = CASE WHEN t.since <= %(old)s THEN 1 ELSE t.count + 1 END,
    since = CASE WHEN t.since <= %(old)s THEN excluded.since ELSE t.since END
RETURNING count, since
"""


def take_try(*, name: str, address: str, at: datetime) -> timedelta | None:
    """Count a try before the password is looked at, so that tries at the same time are all
    counted. None when it may go on, else how long until the next one may.
    """
    with connection.cursor() as cursor:
        cursor.execute(_SWEEP, [at - WINDOW, _SWEPT])
    # The narrow ones first: who has used up tries here takes none from the name everywhere.
    for key, most in (
        (_of_address(address), PER_ADDRESS),
        (_of_both(name, address), PER_NAME_HERE),
        (_of_name(name), PER_NAME),
    ):
        with connection.cursor() as cursor:
            cursor.execute(_COUNT, {"key": key, "at": at, "old": at - WINDOW})
            count, since = cursor.fetchone()
        if count > most:
            left: timedelta = since + WINDOW - at
            return left
    return None


def give_back(*, name: str, address: str) -> None:
    """After a try that succeeded: the name starts anew, the address had one try less. It does not
    start anew, or whoever has an account could guess on behind their own sign-ins."""
    SignInTally.objects.filter(key__in=[_of_name(name), _of_both(name, address)]).delete()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenants_signintally SET count = count - 1 WHERE key = %s AND count > 0",
            [_of_address(address)],
        )


def _of_name(name: str) -> str:
    return _key(f"name:{_plain(name)}")


def _of_address(address: str) -> str:
    return _key(f"address:{_network(address)}")


def _of_both(name: str, address: str) -> str:
    return _key(f"both:{_network(address)} {_plain(name)}")


def _plain(name: str) -> str:
    """The same for what the form takes for one name and for spellings that look alike, whether
    there is such a user or not."""
    longest = User._meta.get_field("username").max_length
    return unicodedata.normalize("NFKC", name.strip())[:longest].casefold().strip()


def _network(address: str) -> str:
    """The same for a whole /64 of IPv6, which is what one subscriber gets."""
    try:
        parsed = ip_address(address)
    except ValueError:  # none: a Unix socket
        return ""
    if isinstance(parsed, IPv6Address):
        parsed = parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64)
    return str(parsed)


def _key(text: str) -> str:
    return salted_hmac("berth.sign-in", text, algorithm="sha256").hexdigest()
