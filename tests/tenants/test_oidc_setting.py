"""BERTH_OIDC: what it may say, and that what is wrong is told without what is secret."""

import json
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from controlplane.settings.oidc import providers

GOOD = {
    "issuer": "https://id.example/realms/x",
    "client_id": "berth",
    "client_secret": "hush-hush",
}


def read(monkeypatch: pytest.MonkeyPatch, told: Any) -> Any:  # Any: JSON, or its text
    text = told if isinstance(told, str) else json.dumps(told)
    monkeypatch.setenv("BERTH_OIDC", text)
    return providers("BERTH_OIDC")


def test_several_are_read_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    local = GOOD | {
        "issuer": "http://127.0.0.1:5556",
        "label": "The Lab",
        "groups_claim": "groups",
    }
    found = read(monkeypatch, {"zen": GOOD, "acme": local})
    assert [(each.name, each.label, each.groups_claim) for each in found.values()] == [
        ("zen", "Zen", ""),
        ("acme", "The Lab", "groups"),
    ]
    assert "hush" not in repr(found)


def test_none_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, "") == {}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("{hush-hush", "has to be JSON"),
        ([GOOD], "an object by provider"),
        ({"Acme": GOOD}, "a name has 1 to 20"),
        ({"acme": "hush-hush"}, "an object of texts"),
        ({"acme": GOOD | {"client_secret": 7}}, "an object of texts"),
        ({"acme": GOOD | {"secret": "hush-hush"}}, "has 'secret'; known: client_id"),
        ({"acme": {"issuer": GOOD["issuer"]}}, "lacks client_id, client_secret"),
        ({"acme": GOOD | {"client_secret": ""}}, "lacks client_secret"),
        ({"acme": GOOD | {"scopes": "profile"}}, "has to name openid"),
        ({"acme": GOOD | {"issuer": "http://id.example"}}, "a URL with https"),
        ({"acme": GOOD | {"issuer": "https://id.example/?x"}}, "a URL with https"),
        ({"acme": GOOD | {"issuer": "id.example"}}, "a URL with https"),
        ({"acme": GOOD | {"issuer": "https://[x"}}, "a URL with https"),
    ],
)
def test_what_is_wrong_is_said_and_no_secret(
    monkeypatch: pytest.MonkeyPatch, told: Any, said: str
) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read(monkeypatch, told)
    assert said in str(refused.value)
    assert str(refused.value).startswith("BERTH_OIDC")
    assert "hush" not in str(refused.value)
