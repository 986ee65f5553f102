"""A real SAML identity provider in a process of its own, and a browser's way through it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from controlplane.demo import ports
from controlplane.settings.saml import Saml
from tests import npm
from tests.arriving import HERE, asked
from tests.parts import WEB
from tests.saml.keys import Signer

_SOURCES = Path(__file__).parent / "provider"
GROUPS = "memberOf"
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"


@dataclass
class RunningProvider:
    """`people` are by what they sign in with; what is told of them may change at any time.
    `settings` go over those of the provider itself."""

    name: str
    port: int
    file: Path
    signer: Signer
    people: dict[str, dict[str, Any]] = field(default_factory=dict)  # Any: JSON values, as below
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def told(self) -> Saml:
        """As BERTH_SAML would have it."""
        return Saml(
            name=self.name,
            label=self.name.capitalize(),
            entity_id=f"https://{self.name}.example/idp",
            sso_url=f"http://127.0.0.1:{self.port}/sso?tenant=a&b",
            certificates=(self.signer.certificate,),
            username_attribute="uid",
            name_attribute="displayName",
            email_attribute="mail",
            groups_attribute=GROUPS,
        )

    def knows(
        self, login: str, *, name_id: str = "", format: str = PERSISTENT, **told: Any
    ) -> None:
        """Somebody is there from now on, or is told of otherwise: `told` are attributes."""
        person = {"name_id": name_id or login, "format": format, "attributes": told}
        self.people[login] = person
        self.write()

    def write(self) -> None:
        told = {
            "entity_id": self.told.entity_id,
            "key": self.signer.key_pem,
            "certificate": self.signer.certificate,
            "audience": HERE + reverse("provider-metadata", args=[self.name]),
            "answer_url": HERE + reverse("provider-answer", args=[self.name]),
            "people": self.people,
            **self.settings,
        }
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(told))
        new.replace(self.file)


@contextmanager
def running(name: str, folder: Path) -> Iterator[RunningProvider]:
    made = RunningProvider(name, ports.free(), folder / f"{name}.json", Signer())
    made.write()
    with npm.serving(_SOURCES, str(made.port), str(made.file), part=WEB):
        yield made


def answered(url: str, login: str) -> dict[str, str]:
    """What the provider has somebody's browser post to Berth once they signed in there."""
    with urlopen(url) as page:
        assert b'name="login"' in page.read()
    with urlopen(url, urlencode({"login": login, "password": "any"}).encode()) as page:
        text = page.read().decode()
    fields = re.findall(r'<input[^>]* name="(\w+)"[^>]* value="([^"]*)"', text)
    return {name: unescape(value) for name, value in fields}


def posts(client: Client, provider: str, sent: dict[str, str]) -> HttpResponse:
    """Both times that a browser posts it: without its session, as another site's page has it, and
    with it; Berth's last answer."""
    url = reverse("provider-answer", args=[provider])
    first = Client().post(url, sent)
    if first.status_code != 200:
        return first  # type: ignore[return-value]  # a subclass at run time
    page = first.content.decode()
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    again = {name: unescape(value) for name, value in fields}
    assert again == {"again": "1", "SAMLResponse": "", "RelayState": "", **sent}
    answer: HttpResponse = client.post(url, again)  # type: ignore[assignment]  # a subclass at run time
    return answer


def signs_in(client: Client, provider: str, login: str, then: str = "") -> HttpResponse:
    """The whole way there and back; Berth's last answer."""
    return posts(client, provider, answered(asked(client, provider, then), login))
