"""BERTH_SAML: what it may say, and that what is wrong is told."""

import json
import subprocess
import sys
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from django.core.exceptions import ImproperlyConfigured

from controlplane.settings import oidc, saml
from controlplane.settings.providers import Provider, by_name
from tests.saml.keys import Key, Signer

ONE, ANOTHER = Signer(), Signer(ec.generate_private_key(ec.SECP256R1()))
GOOD = {
    "entity_id": "https://id.example/idp",
    "sso_url": "https://id.example/sso?idpid=x",
    "certificates": ONE.certificate,
}


def read(monkeypatch: pytest.MonkeyPatch, told: Any) -> dict[str, Provider]:  # Any: JSON
    monkeypatch.setenv("BERTH_SAML", json.dumps(told) if told else "")
    return saml.providers("BERTH_SAML", here="https://berth.example")


def test_several_are_read_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    both = ONE.certificate + ANOTHER.certificate
    more = GOOD | {"certificates": both, "label": "The Campus", "groups_attribute": "memberOf"}
    plain, rich = read(monkeypatch, {"zen": GOOD, "campus": more}).values()
    assert isinstance(plain, saml.Saml)
    assert (plain.name, plain.label, plain.tells_groups) == ("zen", "Zen", False)
    assert plain.certificates == (ONE.certificate,)
    assert isinstance(rich, saml.Saml)
    assert (rich.name, rich.label, rich.tells_groups) == ("campus", "The Campus", True)
    assert rich.certificates == (ONE.certificate, ANOTHER.certificate)


def test_none_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saml, "find_spec", lambda _: None)
    assert read(monkeypatch, "") == {}


def test_without_its_packages_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saml, "find_spec", lambda _: None)
    with pytest.raises(ImproperlyConfigured, match=r"BERTH_SAML needs packages .* its extra saml"):
        read(monkeypatch, {"campus": GOOD})


def test_without_an_address_of_its_own_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or an answer would be for whatever name somebody reached Berth by."""
    monkeypatch.setenv("BERTH_SAML", json.dumps({"campus": GOOD}))
    with pytest.raises(ImproperlyConfigured, match="BERTH_SAML needs BERTH_PUBLIC_URL"):
        saml.providers("BERTH_SAML", here="")


def test_nothing_of_it_is_loaded_where_no_provider_speaks_it() -> None:
    """Or no process would start without the extra."""
    program = (
        "import sys, django; django.setup(); import controlplane.urls;"
        "print({'onelogin', 'lxml', 'xmlsec'} & {name.partition('.')[0] for name in sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert ran.stdout == b"set()\n"


PLAIN = "sso_url has to be a URL with https, in ASCII and without a password"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"campus": {"entity_id": "x"}}, "lacks certificates, sso_url"),
        ({"campus": GOOD | {"metadata_url": "https://x"}}, "has 'metadata_url'; known: cert"),
        ({"campus": GOOD | {"sso_url": "http://id.example/sso"}}, "sso_url has to be a URL with"),
        ({"campus": GOOD | {"sso_url": "id.example/sso"}}, "sso_url has to be a URL with https"),
        ({"campus": GOOD | {"sso_url": "https://bücher.example/"}}, PLAIN),
        (
            {"campus": GOOD | {"sso_url": "https://me:pw@id.example/"}},
            PLAIN,
        ),
        ({"campus": GOOD | {"sso_url": "https://id.example/s so"}}, PLAIN),
        ({"campus": GOOD | {"sso_url": "https://x/sso"}}, PLAIN),
        ({"campus": GOOD | {"certificates": "MIID"}}, "certificates has to be PEM"),
        ({"campus": GOOD | {"certificates": ONE.key_pem}}, "certificates has to be PEM"),
    ],
)
def test_what_is_wrong_is_said(monkeypatch: pytest.MonkeyPatch, told: Any, said: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read(monkeypatch, told)
    assert str(refused.value).startswith("BERTH_SAML, 'campus'")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 1024),  # noqa: S505  # is refused
        ec.generate_private_key(ec.SECP192R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ],
)
def test_a_key_that_is_too_weak_or_of_another_kind_is_refused(
    monkeypatch: pytest.MonkeyPatch, key: Key
) -> None:
    with pytest.raises(ImproperlyConfigured, match="key has to be RSA of 2048 bits or more"):
        read(monkeypatch, {"campus": GOOD | {"certificates": Signer(key).certificate}})


def test_no_two_are_called_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """An account is known by its provider's name."""
    one = {"issuer": "https://id.example", "client_id": "berth", "client_secret": "hush"}
    monkeypatch.setenv("BERTH_OIDC", json.dumps({"campus": one}))
    with pytest.raises(ImproperlyConfigured, match="Two providers are called 'campus'"):
        by_name(oidc.providers("BERTH_OIDC"), read(monkeypatch, {"campus": GOOD}))
