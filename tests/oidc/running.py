"""A real OpenID Connect provider in a process of its own, and a browser's way through it."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPResponse
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, build_opener

from django.http import HttpResponse
from django.test import Client

from controlplane.demo import ports
from controlplane.settings.oidc import OpenIDConnect
from tests import npm
from tests.arriving import HERE, asked
from tests.parts import WEB

_SOURCES = Path(__file__).parent / "provider"
_CLIENT, _SECRET = "berth", "only-for-tests-0123456789"

type Claims = Mapping[str, Any]  # Any: JSON values


@dataclass
class RunningProvider:
    """`people` are by what they sign in with; what is told of them may change at any time."""

    name: str
    port: int
    file: Path
    by_user_info: bool
    people: dict[str, Claims] = field(default_factory=dict)

    @property
    def told(self) -> OpenIDConnect:
        """As BERTH_OIDC would have it."""
        return OpenIDConnect(
            name=self.name,
            label=self.name.capitalize(),
            issuer=f"http://127.0.0.1:{self.port}",
            client_id=_CLIENT,
            client_secret=_SECRET,
            groups_claim="groups",
            scopes="openid profile email groups",
        )

    def knows(self, login: str, **claims: Any) -> None:  # Any: JSON values
        """Somebody is there from now on, or is told of otherwise."""
        self.people[login] = claims
        self._write()

    def forgets(self, login: str) -> None:
        del self.people[login]
        self._write()

    def _write(self) -> None:
        back = [f"{HERE}/sign-in/{self.name}/back"]
        client = {"client_id": _CLIENT, "client_secret": _SECRET, "redirect_uris": back}
        told = {"clients": [client], "people": self.people, "by_user_info": self.by_user_info}
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(told))
        new.replace(self.file)


@contextmanager
def running(name: str, folder: Path, *, by_user_info: bool = True) -> Iterator[RunningProvider]:
    """One that answers; `by_user_info` tells claims at its own endpoint, else in the ID token."""
    made = RunningProvider(name, ports.free(), folder / f"{name}.json", by_user_info)
    made._write()
    with npm.serving(_SOURCES, str(made.port), str(made.file), part=WEB):
        yield made


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:  # Any: as urllib has it
        return None


class AtProvider:
    """What somebody's browser does at a provider; its cookies stay there."""

    def __init__(self) -> None:
        self._open = build_opener(_Stay, HTTPCookieProcessor(CookieJar())).open

    def signs_in(self, url: str, login: str) -> str:
        """From where Berth sent them to where the provider sends them back."""
        while not url.startswith(HERE):
            answer = self._ask(url)
            if location := answer.headers["Location"]:
                url = urljoin(url, location)
                continue
            [action] = re.findall(r'<form[^>]* action="([^"]+)"', answer.read().decode())
            form = urlencode({"prompt": "login", "login": login, "password": "any"}).encode()
            url = urljoin(url, self._ask(urljoin(url, action), form).headers["Location"])
        return url

    def _ask(self, url: str, form: bytes | None = None) -> HTTPResponse | HTTPError:
        try:
            answer: HTTPResponse | HTTPError = self._open(url, form)
        except HTTPError as error:
            answer = error
        assert (answer.status or 500) < 400, answer.read()
        return answer


def signs_in(client: Client, provider: str, login: str, then: str = "") -> HttpResponse:
    """The whole way there and back; Berth's last answer."""
    back = AtProvider().signs_in(asked(client, provider, then), login)
    answer: HttpResponse = client.get(back.removeprefix(HERE))  # type: ignore[assignment]  # a subclass at run time
    return answer
