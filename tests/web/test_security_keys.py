"""Security keys as second factor: added, asked for at the door, shown and removed; what is no
answer of one, and whose keys open nothing."""

import io
import json
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from fido2 import cbor
from fido2.utils import websafe_encode
from pytest_django import Settings

from controlplane.audit.models import AuditEvent
from controlplane.portal import security_keys
from tests.conftest import Cast
from tests.soft_key import FLAG, SoftKey
from tests.web.test_second_factor import (
    ENTER,
    HOME,
    PROOF,
    URL,
    _no_tries,
    actions,
    at_the_door,
    code,
    may_change,
    set_up,
)
from tests.web.test_sessions import is_in, signed_in_as

__all__ = ["_no_tries"]

ADD = reverse("second-factor-key")


def asked(client: Client, url: str = URL) -> str:
    """What the page has the browser ask a key."""
    found: str = client.get(url).context["asked"]
    return found


def add(client: Client, *, name: str = "Blue", key: SoftKey | None = None) -> SoftKey:
    key = key or SoftKey()
    answer = client.post(ADD, {"name": name, "credential": key.create(asked(client))})
    assert answer.status_code in {201, 303}, answer.content.decode()
    return key


def prove(client: Client, key: SoftKey) -> None:
    answer = client.post(PROOF, {"credential": key.get(asked(client))})
    assert answer.headers["Location"] == URL


def enter(client: Client, credential: str) -> bool:
    """Whether who was at the door is in by that answer."""
    client.post(ENTER, {"credential": credential})
    return is_in(client)


def keys() -> list[str]:
    return [str(row) for row in Authenticator.objects.filter(type="webauthn").order_by("id")]


def remove_url(name: str) -> str:
    [row] = [row for row in Authenticator.objects.filter(type="webauthn") if str(row) == name]
    return reverse("second-factor-remove", args=[row.pk])


def test_a_key_is_a_second_factor_by_itself(cast: Cast) -> None:
    client, old = signed_in_as("ben"), signed_in_as("ben")
    key = SoftKey()
    answer = client.post(ADD, {"name": "Blue", "credential": key.create(asked(client))})
    assert answer.status_code == 201
    codes = answer.context["codes"]
    assert len(set(codes)) == 10
    assert (is_in(old), is_in(client)) == (False, True)  # a password alone opened that one
    for how in ({"credential": None}, {"code": codes[0]}):
        door = at_the_door("ben")
        sent = {name: value or key.get(asked(door, ENTER)) for name, value in how.items()}
        assert door.post(ENTER, sent).headers["Location"] == HOME
        assert is_in(door)
    event = AuditEvent.objects.get(action="second-factor.add")
    assert event.after == {"kind": "key", "name": "Blue"}


def test_it_is_listed_with_its_last_use(cast: Cast) -> None:
    client = signed_in_as("ben")
    key = add(client)
    assert "never" in client.get(URL).content.decode()
    door = at_the_door("ben")
    assert enter(door, key.get(asked(door, ENTER)))
    page = door.get(URL).content.decode()
    assert "Blue" in page
    assert "just now" in page
    assert "never" not in page


def test_several_keys_and_an_app_stand_beside_each_other(cast: Cast) -> None:
    client = signed_in_as("ben")
    secret, codes = set_up(client)
    client.post(PROOF, {"code": codes[0]})
    blue, red = add(client), add(client, name="Red")
    assert keys() == ["Blue", "Red"]
    for key in (blue, red):
        door = at_the_door("ben")
        assert enter(door, key.get(asked(door, ENTER)))
    door = at_the_door("ben")
    door.post(ENTER, {"code": code(secret)})
    assert is_in(door)
    client.post(remove_url("Blue"))
    door = at_the_door("ben")
    assert not enter(door, blue.get(asked(door, ENTER)))
    assert enter(door, red.get(asked(door, ENTER)))
    assert actions() == ["second-factor.add"] * 3 + ["second-factor.remove"]
    gone = AuditEvent.objects.get(action="second-factor.remove")
    assert gone.before == {"kind": "key", "name": "Blue"}


def test_the_codes_go_with_the_last(cast: Cast) -> None:
    client = signed_in_as("ben")
    key = add(client)
    prove(client, key)
    assert client.post(remove_url("Blue")).status_code == 303
    assert not Authenticator.objects.exists()
    assert is_in(signed_in_as("ben"))


def test_to_add_or_remove_one_wants_a_proof(cast: Cast) -> None:
    client = signed_in_as("ben")
    first, second = SoftKey(), SoftKey()
    early = asked(client)  # of a page from before there was one
    add(client, key=first)
    sent = {"name": "Red", "credential": second.create(early)}
    assert client.post(ADD, sent).status_code == 403
    assert client.post(remove_url("Blue")).status_code == 403
    assert keys() == ["Blue"]
    prove(client, first)
    assert may_change(client)
    add(client, name="Red", key=second)


def test_a_role_that_asks_for_one_is_content_with_a_key_and_keeps_the_last(
    cast: Cast, settings: Settings
) -> None:
    settings.BERTH_MFA_ROLES = frozenset({"operator"})
    client = signed_in_as("oz")
    assert client.get(HOME).headers["Location"] == URL
    key = add(client)
    assert client.get(HOME).status_code == 200
    prove(client, key)
    assert remove_url("Blue") not in client.get(URL).content.decode()
    answer = client.post(remove_url("Blue"))
    assert answer.status_code == 403
    assert "the last you have" in answer.content.decode()
    add(client, name="Red")
    assert client.post(remove_url("Blue")).status_code == 303
    assert client.post(remove_url("Red")).status_code == 403
    assert keys() == ["Red"]


def test_anothers_key_opens_nothing_and_is_not_removed(cast: Cast) -> None:
    bens, cleos = signed_in_as("ben"), signed_in_as("cleo")
    cleos_key = add(cleos, name="Hers")
    bens_key = add(bens)
    door = at_the_door("ben")
    assert not enter(door, cleos_key.get(asked(door, ENTER)))
    answer = bens.post(PROOF, {"credential": cleos_key.get(asked(bens))})
    assert answer.status_code == 422
    assert "no key of yours" in answer.content.decode()
    prove(bens, bens_key)
    assert bens.post(remove_url("Hers")).status_code == 404
    assert keys() == ["Hers", "Blue"]


@pytest.mark.parametrize(
    "lies",
    [
        {"challenge": "A" * 43},
        {"origin": "https://evil.example"},
        {"origin": "http://testserver"},
        {"type": "webauthn.create"},
        {"flags": FLAG(0)},  # nobody touched it
    ],
    ids=str,
)
def test_an_answer_to_another_question_opens_nothing(cast: Cast, lies: dict[str, Any]) -> None:
    client = signed_in_as("ben")
    key = add(client)
    door = at_the_door("ben")
    assert not enter(door, key.get(asked(door, ENTER), **lies))
    assert client.post(PROOF, {"credential": key.get(asked(client), **lies)}).status_code == 422
    assert not may_change(client)


def test_an_answer_of_another_host_or_of_another_hand_opens_nothing(cast: Cast) -> None:
    client = signed_in_as("ben")
    key = add(client)
    door = at_the_door("ben")
    elsewhere, forged = SoftKey(host="evil.example"), SoftKey()
    elsewhere.id = forged.id = key.id
    elsewhere._private = key._private
    assert not enter(door, elsewhere.get(asked(door, ENTER)))
    assert not enter(door, forged.get(asked(door, ENTER)))
    assert enter(door, key.get(asked(door, ENTER)))


def test_an_answer_opens_once(cast: Cast) -> None:
    key = add(signed_in_as("ben"))
    first, second = at_the_door("ben"), at_the_door("ben")
    told = key.get(asked(first, ENTER))
    assert enter(first, told)
    first.post(reverse("logout"))
    assert not enter(second, told)
    asked(second, ENTER)
    assert not enter(second, told)


def test_tries_have_an_end(cast: Cast) -> None:
    key, forged = add(signed_in_as("ben")), SoftKey()
    forged.id = key.id
    door = at_the_door("ben")
    for _ in range(5):
        assert not enter(door, forged.get(asked(door, ENTER)))
    assert not enter(door, key.get(asked(door, ENTER)))


@pytest.mark.parametrize(
    "lies", [{"challenge": "A" * 43}, {"origin": "https://evil.example"}, {"type": "webauthn.get"}]
)
def test_a_key_that_answers_another_question_is_not_added(
    cast: Cast, lies: dict[str, Any]
) -> None:
    client = signed_in_as("ben")
    sent = {"name": "Blue", "credential": SoftKey().create(asked(client), **lies)}
    answer = client.post(ADD, sent)
    assert answer.status_code == 422
    assert "did not answer what this page asked" in answer.content.decode()
    assert not Authenticator.objects.exists()


def test_a_key_is_added_once_and_there_is_an_end_of_keys(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security_keys, "MOST", 2)
    client = signed_in_as("ben")
    key = add(client)
    prove(client, key)
    sent = {"name": "Again", "credential": key.create(asked(client))}
    assert "That key is yours already." in client.post(ADD, sent).content.decode()
    add(client, name="Red")
    sent = {"name": "Green", "credential": SoftKey().create(asked(client))}
    assert "You have 2 keys; remove one first." in client.post(ADD, sent).content.decode()
    assert keys() == ["Blue", "Red"]


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\u202eb", "a\x00b"])
def test_a_name_can_be_read(cast: Cast, name: str) -> None:
    client = signed_in_as("ben")
    sent = {"name": name, "credential": SoftKey().create(asked(client))}
    assert client.post(ADD, sent).status_code == 422
    assert not Authenticator.objects.exists()


def broken(told: str) -> list[str]:
    """Answers that fell apart on the way, each in another place."""
    whole = json.loads(told)
    found: list[Any] = [None, 1, "x", [], {}, {"rawId": 1}, {**whole, "rawId": 10**9}]
    parts: dict[str, str] = whole["response"]
    odd: list[Any] = [None, 10**9, [1], {}, "", "AA", "é", "_" * 400]
    for part, value in parts.items():
        found += [{**whole, "response": {**parts, part: each}} for each in (*odd, value[:-9])]
        found.append({**whole, "response": {name: "AA" for name in parts if name != part}})
    return ["", "{", "[" * 9000, "1" * 5000, "x" * 20_000, *map(json.dumps, found)]


def test_what_is_no_answer_of_a_key_is_refused_in_words(cast: Cast) -> None:
    client = signed_in_as("ben")
    for told in broken(SoftKey().create(asked(client))):
        answer = client.post(ADD, {"name": "Blue", "credential": told})
        assert answer.status_code == 422, told
        assert 'role="alert"' in answer.content.decode(), told
    assert not Authenticator.objects.exists()
    key = add(client)
    for told in broken(key.get(asked(client))):
        assert client.post(PROOF, {"credential": told}).status_code == 422, told
    door = at_the_door("ben")
    for told in broken(key.get(asked(door, ENTER))):
        assert door.post(ENTER, {"credential": told}).status_code == 200, told
    assert not is_in(door)


def test_a_number_for_a_text_makes_no_bytes(cast: Cast) -> None:
    """fido2 makes as many zeros of it: more than there is memory."""
    client, key = signed_in_as("ben"), SoftKey()
    attested = websafe_encode(cbor.encode({"fmt": "none", "authData": 10**13, "attStmt": {}}))
    told = json.loads(key.create(asked(client)))
    told["response"]["attestationObject"] = attested
    for credential in (key.create(asked(client), challenge=10**13), json.dumps(told)):
        sent = {"name": "Blue", "credential": credential}
        assert client.post(ADD, sent).status_code == 422
    add(client, key=key)
    door = at_the_door("ben")
    assert not enter(door, key.get(asked(door, ENTER), challenge=10**13))


def test_only_what_is_checked_is_kept_of_an_answer(cast: Cast) -> None:
    client = signed_in_as("ben")
    told = json.loads(SoftKey().create(asked(client)))
    told["clientExtensionResults"] = {"x": "\x00" * 100}  # which no JSON of PostgreSQL holds
    told["response"]["more"] = "x"
    answer = client.post(ADD, {"name": "Blue", "credential": json.dumps(told)})
    assert answer.status_code == 201
    kept = Authenticator.objects.get(type="webauthn").data["credential"]
    assert set(kept) == {"rawId", "type", "response"}
    assert set(kept["response"]) == {"clientDataJSON", "attestationObject"}


def test_a_key_that_could_never_answer_is_not_added(cast: Cast) -> None:
    client = signed_in_as("ben")
    for fault in ("algorithm", "point", "size"):
        key = SoftKey(fault=fault)
        answer = client.post(ADD, {"name": "Blue", "credential": key.create(asked(client))})
        assert answer.status_code == 422, fault
    told = {**json.loads(SoftKey().create(asked(client))), "rawId": "AAAA"}  # of another key
    assert client.post(ADD, {"name": "Blue", "credential": json.dumps(told)}).status_code == 422
    assert not Authenticator.objects.exists()


def test_who_has_no_key_is_not_asked_for_one(cast: Cast) -> None:
    set_up(signed_in_as("ben"))
    page = at_the_door("ben").get(ENTER).content.decode()
    assert "security key" not in page
    assert "security_key.js" not in page


def test_a_lost_key_is_taken_back_by_the_command(cast: Cast) -> None:
    client = signed_in_as("ben")
    add(client)
    call_command("reset_second_factor", "ben", stdout=io.StringIO())
    assert not Authenticator.objects.exists()
    assert not is_in(client)
    assert is_in(signed_in_as("ben"))
    assert actions() == ["second-factor.add", "second-factor.reset"]


def test_what_a_key_is_told_is_berth_and_who(cast: Cast) -> None:
    options = json.loads(asked(signed_in_as("ben")))["publicKey"]
    assert options["rp"] == {"id": "testserver", "name": "Berth"}
    assert options["user"]["name"] == "ben"
    elsewhere = Client(headers={"Host": "localhost:8000"})
    elsewhere.force_login(cast.ben)
    assert json.loads(asked(elsewhere))["publicKey"]["rp"]["id"] == "localhost"
