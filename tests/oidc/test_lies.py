"""What a provider, or somebody between, may say wrong: nobody is signed in, and nothing stored."""

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from tenants.models import Role, User
from tests.arriving import HERE, asked, give, is_in
from tests.conftest import Cast, Unchanged
from tests.oidc.lying import OTHER_KEY, OWN_KEY, LyingProvider, comes_back, lying
from tests.oidc.running import AtProvider, RunningProvider

BELIEVED = "gave an answer that can&#x27;t be believed."


@pytest.fixture
def liar(cast: Cast, fay: User, settings: Settings) -> Iterator[LyingProvider]:
    """Its group "all" may see Speech Lab."""
    with lying() as made:
        settings.BERTH_PROVIDERS = {"liar": made.told}
        give(fay, "all", Role.VIEWER, cast.speech, provider="liar")
        yield made


def test_the_truth_lets_in(liar: LyingProvider) -> None:
    """Or else no lie below would show anything."""
    client = Client()
    assert comes_back(client, liar).status_code == 302
    assert is_in(client)


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "another-client"},
        {"aud": ["another-client"]},
        {"aud": None},
        {"aud": ["berth", "another-client"], "azp": "another-client"},
        {"nonce": "of another question"},
        {"nonce": None},
        {"nonce": ["x"]},
        {"exp": 1_000_000_000},
        {"exp": None},
        {"iat": 4_000_000_000},
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 192},
        {"sub": 7},
        {"groups": {"all": True}},
        {"groups": ["all", 7]},
        {"groups": [f"g{n}" for n in range(2001)]},
        {"groups": None, "_claim_names": {"groups": "src1"}},
    ],
)
def test_a_token_that_says_it_wrong_lets_nobody_in(
    liar: LyingProvider, claims: dict[str, object], nothing_stored: Unchanged
) -> None:
    liar.claims = claims
    liar.user_info = {"sub": claims["sub"]} if claims.get("sub") else {}
    client = Client()
    with nothing_stored():
        answer = comes_back(client, liar)
        assert (answer.status_code, BELIEVED in answer.content.decode()) == (403, True)
    assert not is_in(client)


def _unsigned(liar: LyingProvider) -> str:
    return jwt.encode(liar.right(), "", "none")


def _by_the_public_key_as_a_secret(liar: LyingProvider) -> str:
    """HS256 with what everybody may know: written by hand, for the library refuses to."""
    head, body = (
        urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "kid": "k"}, liar.right())
    )
    pem = OWN_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    mac = hmac.digest(pem, head + b"." + body, "sha256")
    return b".".join((head, body, urlsafe_b64encode(mac).rstrip(b"="))).decode()


def _by_another_key(liar: LyingProvider) -> str:
    return jwt.encode(liar.right(), OTHER_KEY, "RS256", headers={"kid": "k"})


def _by_a_key_of_no_name(liar: LyingProvider) -> str:
    return jwt.encode(liar.right(), OWN_KEY, "RS256", headers={"kid": "unknown"})


def _no_token(liar: LyingProvider) -> str:
    return "x.y.z"


@pytest.mark.parametrize(
    "said",
    [
        _unsigned,
        _by_the_public_key_as_a_secret,
        _by_another_key,
        _by_a_key_of_no_name,
        _no_token,
    ],
)
def test_a_token_that_is_not_signed_by_the_provider_lets_nobody_in(
    liar: LyingProvider, said: Callable[[LyingProvider], str]
) -> None:
    client = Client()
    sent = parse_qs(urlsplit(asked(client, "liar")).query)
    liar.nonce = sent["nonce"][0]
    liar.id_token = said(liar)
    back = {"code": "c", "state": sent["state"][0]}
    answer = client.get(reverse("provider-back", args=["liar"]), back)
    assert (answer.status_code, BELIEVED in answer.content.decode()) == (403, True)
    assert not is_in(client)


def test_user_info_of_somebody_else_lets_nobody_in(liar: LyingProvider) -> None:
    client = Client()
    signs = comes_back(client, liar)
    assert signs.status_code == 302
    victim = User.objects.get(socialaccount__uid="mallory")
    liar.claims, other = {"sub": "eve"}, Client()
    answer = comes_back(other, liar)  # user info still says mallory
    assert (answer.status_code, is_in(other)) == (403, False)
    assert User.objects.filter(socialaccount__provider="liar").get() == victim


@pytest.mark.parametrize(
    ("config", "status"),
    [
        ({"issuer": "https://evil.example"}, 403),
        ({"jwks_uri": None}, 403),
        ({"authorization_endpoint": 7}, 403),
    ],
)
def test_a_provider_that_is_another_is_not_asked(
    liar: LyingProvider, config: dict[str, object], status: int
) -> None:
    liar.config = config
    answer = Client().get(reverse("provider-sign-in", args=["liar"]))
    assert (answer.status_code, BELIEVED in answer.content.decode()) == (status, True)


def test_a_provider_that_does_not_answer_is_told_of(
    liar: LyingProvider, settings: Settings
) -> None:
    client = Client()
    sent = asked(client, "liar")
    gone = liar.told.__class__(**{
        "name": "liar", "label": "Liar", "issuer": "http://127.0.0.1:9", "client_id": "berth",
        "client_secret": "x",
    })  # fmt: skip
    settings.BERTH_PROVIDERS = {"liar": gone}
    state = parse_qs(urlsplit(sent).query)["state"][0]
    back = reverse("provider-back", args=["liar"])
    for answer in (
        client.get(reverse("provider-sign-in", args=["liar"])),
        client.get(back, {"code": "c", "state": state}),
    ):
        assert answer.status_code == 503
        assert "Liar does not answer." in answer.content.decode()


@pytest.mark.parametrize("query", [{"error": "access_denied"}, {"error": "<script>"}, {}])
def test_who_is_not_signed_in_there_is_told_so(liar: LyingProvider, query: dict[str, str]) -> None:
    client = Client()
    state = parse_qs(urlsplit(asked(client, "liar")).query)["state"][0]
    answer = client.get(reverse("provider-back", args=["liar"]), {"state": state, **query})
    assert answer.status_code == 403
    page = answer.content.decode()
    assert "Liar signed nobody in." in page
    assert "<script>" not in page


@pytest.mark.parametrize("state", ["", "made-up", "0" * 5000])
def test_an_answer_that_nobody_asked_for_lets_nobody_in(liar: LyingProvider, state: str) -> None:
    client = Client()
    assert comes_back(client, liar, state=state).status_code == 403
    assert not is_in(client)


def test_an_answer_counts_once_and_in_the_browser_that_asked(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "all", Role.VIEWER, cast.speech)
    acme.knows("dot", preferred_username="dot", groups=["all"])
    client, thief = Client(), Client()
    back = AtProvider().signs_in(asked(client, "acme"), "dot").removeprefix(HERE)
    asked(thief, "acme")
    assert thief.get(back).status_code == 403
    assert client.get(back).status_code == 302
    client.post(reverse("logout"))
    assert client.get(back).status_code == 403
    assert (is_in(client), is_in(thief)) == (False, False)


def test_an_answer_of_one_provider_is_none_of_another(
    acme: RunningProvider, zen: RunningProvider, cast: Cast
) -> None:
    zen.knows("dot", preferred_username="dot", groups=["all"])
    client = Client()
    back = AtProvider().signs_in(asked(client, "zen"), "dot").removeprefix(HERE)
    assert client.get(back.replace("/zen/", "/acme/")).status_code == 403


def test_an_answer_that_names_another_issuer_lets_nobody_in(liar: LyingProvider) -> None:
    client = Client()
    assert comes_back(client, liar, iss="https://evil.example").status_code == 403
    assert not is_in(client)
    assert comes_back(client, liar, iss=liar.issuer).status_code == 302


def test_it_never_leads_elsewhere(liar: LyingProvider) -> None:
    client = Client()
    url = reverse("provider-sign-in", args=["liar"])
    sent = parse_qs(urlsplit(client.get(url, {"next": "https://evil.example/"})["Location"]).query)
    liar.nonce = sent["nonce"][0]
    answer = client.get(
        reverse("provider-back", args=["liar"]), {"code": "c", "state": sent["state"][0]}
    )
    assert answer.headers["Location"] == reverse("home")


def test_it_asks_with_what_binds_the_answer_to_the_question(liar: LyingProvider) -> None:
    first, second = (parse_qs(urlsplit(asked(Client(), "liar")).query) for _ in range(2))
    assert first["code_challenge_method"] == ["S256"]
    assert first["response_type"] == ["code"]
    for name in ("state", "nonce", "code_challenge"):
        assert first[name] != second[name]
        assert len(first[name][0]) >= 16


def test_a_provider_that_nobody_set_up_is_not_there(cast: Cast) -> None:
    for name in ("provider-sign-in", "provider-back"):
        assert Client().get(reverse(name, args=["nobody"])).status_code == 404
