"""The providers that people sign in by, as the environment has them: what all kinds have alike."""

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Set
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.core.exceptions import ImproperlyConfigured

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider(ABC):
    """`name` is in addresses and with accounts, `label` is for people."""

    name: str
    label: str

    @property
    @abstractmethod
    def tells_groups(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a setting says of one provider, by its own words; `where` begins what is said of it."""

    where: str
    name: str
    values: dict[str, str]


def told(setting: str, *, needed: Set[str], known: Set[str]) -> Iterator[Told]:
    """Of each provider that the environment's `setting` has, in its order. What is said of a bad
    one repeats no value, as one of them may be a secret."""
    text = os.environ.get(setting, "")
    if not text:
        return
    try:
        found = json.loads(text)
    except ValueError:
        raise ImproperlyConfigured(f"{setting} has to be JSON: an object by provider.") from None
    if not isinstance(found, dict):
        raise ImproperlyConfigured(f"{setting} has to be an object by provider.")
    for name, values in found.items():
        where = f"{setting}, {name!a}"
        if not _NAME.fullmatch(name):
            raise ImproperlyConfigured(f"{where}: a name has 1 to 20 of a-z, 0-9 and -.")
        if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
            raise ImproperlyConfigured(f"{where} has to be an object of texts.")
        if unknown := values.keys() - known:
            listed = ", ".join(sorted(known))
            raise ImproperlyConfigured(f"{where} has {min(unknown)[:40]!a}; known: {listed}.")
        if missing := {each for each in needed if not values.get(each)}:
            raise ImproperlyConfigured(f"{where} lacks {', '.join(sorted(missing))}.")
        yield Told(where=where, name=name, values={"label": name.capitalize(), **values})


def web_address(value: str) -> SplitResult | None:
    """None for what is no URL with https, or with http on this machine."""
    try:
        url = urlsplit(value)
        host = url.hostname
    except ValueError:
        return None
    plain = url.scheme == "http" and host in _LOOPBACK
    return url if host and (url.scheme == "https" or plain) else None


def by_name(*kinds: dict[str, Provider]) -> dict[str, Provider]:
    """All kinds together: an account is known by its provider's name, so no two have one."""
    found: dict[str, Provider] = {}
    for each in kinds:
        if twice := found.keys() & each.keys():
            raise ImproperlyConfigured(f"Two providers are called {min(twice)!a}.")
        found |= each
    return found
