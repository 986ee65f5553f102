"""A provider that says whatever a test wants, signed by whatever key."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from controlplane.settings.oidc import OpenIDConnect
from tests.arriving import asked

OWN_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class LyingProvider:
    """`claims` go over those that would be right, None takes one away; `id_token` goes over the
    whole token. `config` goes over what it says of itself, `user_info` over what it tells there.
    """

    issuer: str
    claims: dict[str, Any] = field(default_factory=dict)  # Any: JSON values, as below
    user_info: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    key: rsa.RSAPrivateKey = OWN_KEY
    id_token: str | None = None
    nonce: str = ""

    @property
    def told(self) -> OpenIDConnect:
        return OpenIDConnect(
            name="liar", label="Liar", issuer=self.issuer, client_id="berth",
            client_secret="only-for-tests", groups_claim="groups",
        )  # fmt: skip

    def right(self) -> dict[str, Any]:
        now = int(time.time())
        return {
            "iss": self.issuer, "aud": "berth", "sub": "mallory", "nonce": self.nonce,
            "iat": now, "exp": now + 300, "groups": ["all"],
        }  # fmt: skip

    def said(self) -> str:
        """The ID token."""
        claims = {**self.right(), **self.claims}
        kept = {name: value for name, value in claims.items() if value is not None}
        return self.id_token or jwt.encode(kept, self.key, "RS256", headers={"kid": "k"})

    def answer(self, path: str) -> object:
        match path:
            case "/.well-known/openid-configuration":
                names = {
                    "authorization_endpoint": "auth", "token_endpoint": "token",
                    "jwks_uri": "keys", "userinfo_endpoint": "userinfo",
                }  # fmt: skip
                urls = {name: f"{self.issuer}/{end}" for name, end in names.items()}
                return {"issuer": self.issuer, **urls, **self.config}
            case "/keys":
                return {"keys": [public(OWN_KEY)]}
            case "/token":
                return {"access_token": "a", "token_type": "Bearer", "id_token": self.said()}
            case _:
                return {"sub": "mallory", **self.user_info}


def public(key: rsa.RSAPrivateKey) -> dict[str, str]:
    """As a set of keys has it."""
    numbers = key.public_key().public_numbers()

    def text(number: int) -> str:
        raw = number.to_bytes((number.bit_length() + 7) // 8)
        return urlsafe_b64encode(raw).rstrip(b"=").decode()

    return {"kty": "RSA", "kid": "k", "use": "sig", "n": text(numbers.n), "e": text(numbers.e)}


@contextmanager
def lying() -> Iterator[LyingProvider]:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            self.rfile.read(length)
            body = json.dumps(made.answer(urlsplit(self.path).path)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    made = LyingProvider(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def comes_back(client: Client, liar: LyingProvider, **query: str) -> HttpResponse:
    """Asked by Berth, it sends the browser back at once; `query` goes over what it says then."""
    sent = parse_qs(urlsplit(asked(client, "liar")).query)
    liar.nonce = sent["nonce"][0]
    back = {"code": "c", "state": sent["state"][0], **query}
    answer: HttpResponse = client.get(reverse("provider-back", args=["liar"]), back)  # type: ignore[assignment]  # a subclass at run time
    return answer
