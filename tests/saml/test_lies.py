"""What a SAML provider, or somebody between, may say wrong: nobody is signed in."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client
from lxml import etree
from pytest_django import Settings
from xmlsec import Transform

from tests.arriving import is_in
from tests.conftest import Unchanged
from tests.saml.forging import (
    BELIEVED,
    OTHER,
    OWN,
    Answer,
    Element,
    P,
    question,
    refused,
    sent,
    signed,
    told,
)
from tests.saml.keys import Signer
from tests.saml.running import GROUPS, posts

pytestmark = pytest.mark.usefixtures("liar")
TRANSIENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"


@pytest.mark.parametrize(
    "told_right",
    [
        {},
        {"response_issuer": None},
        {"destination": None},
        {"audiences": ("", "")},
        {"name": {}},
        {"name_id": "mallory", "conditions_end_s": -200},  # clocks differ by less than 300 s
        {"attributes": ((GROUPS, ("football",)), (GROUPS, ("all",)))},
    ],
)
def test_the_truth_lets_in(told_right: dict[str, Any]) -> None:
    """Or else no lie below would show anything."""
    client = Client()
    asked = question(client)
    answer = posts(client, "liar", sent(asked, Answer(asked=asked, **told_right).signed()))
    assert (answer.status_code, is_in(client)) == (302, True)


HERE_AND_NOW = "its assertion is not for this question, at this address, of now"
NO_CONFIRMATION = "A valid SubjectConfirmation was not found"
ANYBODY = "its assertion is for somebody else, or for anybody"
NO_SUBJECT = "its subject is no text of 1 to 191 characters"
ELSEWHERE = "http://schemas.microsoft.com/claims/groups.link"


@pytest.mark.parametrize(
    ("lie", "logged"),
    [
        ({"issuer": "https://evil.example"}, "Invalid issuer"),
        ({"response_issuer": "https://evil.example"}, "Invalid issuer"),
        ({"issuer": "", "response_issuer": None}, "its assertion is another provider"),
        ({"audiences": ()}, ANYBODY),
        ({"audiences": ("https://another.example",)}, "is not a valid audience"),
        ({"audiences": ("", "https://another.example")}, ANYBODY),
        ({"recipient": None}, HERE_AND_NOW),
        ({"recipient": "https://another.example"}, NO_CONFIRMATION),
        ({"recipient": "http://testserver/sign-in/liar/answer/more"}, HERE_AND_NOW),
        (
            {"recipient": "http://evil.example/?http://testserver/sign-in/liar/answer"},
            HERE_AND_NOW,
        ),
        ({"destination": "https://another.example"}, "The response was received at"),
        ({"confirms": None}, HERE_AND_NOW),
        ({"confirms": "_another"}, NO_CONFIRMATION),
        ({"response_to": None}, "it answers another question"),
        ({"response_to": "_another"}, "The InResponseTo of the Response"),
        ({"method": "urn:oasis:names:tc:SAML:2.0:cm:sender-vouches"}, NO_CONFIRMATION),
        ({"ends_s": None}, HERE_AND_NOW),
        ({"ends_s": -1}, NO_CONFIRMATION),
        ({"confirms_from_s": -60}, HERE_AND_NOW),
        ({"starts_s": 900}, "not yet valid"),
        ({"conditions_end_s": -900}, "expired"),
        ({"name_id": None}, "it names nobody by a NameID"),
        ({"name_id": ""}, NO_SUBJECT),
        ({"name_id": " \n "}, NO_SUBJECT),
        ({"name_id": "x" * 192}, NO_SUBJECT),
        ({"name": {"Format": TRANSIENT}}, "its NameID is another one each time"),
        ({"name": {"NameQualifier": "https://evil.example"}}, "its NameID is another provider"),
        ({"name": {"SPNameQualifier": "https://evil.example"}}, "its NameID is another provider"),
        ({"attributes": ((GROUPS, [f"g{n}" for n in range(2001)]),)}, "more than 2000 groups"),
        ({"attributes": ((ELSEWHERE, ["https://x"]),)}, "it has too many groups"),
    ],
)
def test_an_answer_that_says_it_wrong_lets_nobody_in(
    lie: dict[str, Any],
    logged: str,
    nothing_stored: Unchanged,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = Client()
    asked = question(client)
    document = Answer(asked=asked, **lie).signed()
    assert BELIEVED in refused(client, asked, document, nothing_stored)
    assert logged in caplog.text


DOCTYPES = [
    b"<!DOCTYPE a SYSTEM 'http://127.0.0.1:9/'>",
    b"<!DOCTYPE a [<!ENTITY b 'bb'><!ENTITY c '&b;&b;&b;'>]>",
    b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>",
]


@pytest.mark.parametrize("doctype", DOCTYPES)
def test_a_sound_answer_behind_a_doctype_is_refused(
    doctype: bytes, nothing_stored: Unchanged, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client()
    asked = question(client)
    document = doctype + etree.tostring(Answer(asked=asked).signed())
    assert BELIEVED in refused(client, asked, document, nothing_stored)
    assert "DTDForbidden" in caplog.text


def _deep(depth: int) -> Element:
    extensions = P.Extensions()
    inner = extensions
    for _ in range(depth):
        inner.append(inner.makeelement("{urn:x}a"))
        inner = inner[0]
    return extensions


def _many(count: int) -> Element:
    return P.Extensions(*(P.Extensions() for _ in range(count)))


@pytest.mark.parametrize(
    ("extensions", "logged"),
    [
        (_deep(300), "Excessive depth in document"),
        (_many(10_000), "more than 10000 elements"),
        (P.Extensions("x" * 200_000), "longer than 262144 characters"),
    ],
)
def test_a_sound_answer_that_is_too_large_to_look_at_is_refused(
    extensions: Element,
    logged: str,
    nothing_stored: Unchanged,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What is beside the assertion is not signed: anybody may put it there."""
    client = Client()
    asked = question(client)
    document = Answer(asked=asked).signed()
    document.insert(1, extensions)
    assert BELIEVED in refused(client, asked, document, nothing_stored)
    assert logged in caplog.text


@pytest.mark.parametrize("text", [b"", b"no XML", b"<a/>", b"<a>", b"\xff\xfe<a/>"])
def test_what_is_no_answer_is_refused(text: bytes, nothing_stored: Unchanged) -> None:
    client = Client()
    asked = question(client)
    assert BELIEVED in refused(client, asked, text, nothing_stored)


@pytest.mark.parametrize("text", ["%%%", "ä", "A"])
def test_what_is_no_base64_is_refused(text: str, nothing_stored: Unchanged) -> None:
    client = Client()
    asked = question(client)
    with nothing_stored():
        answer = posts(client, "liar", {"SAMLResponse": text, "RelayState": asked})
    assert (answer.status_code, BELIEVED in answer.content.decode()) == (403, True)


def test_who_was_not_signed_in_there_is_told_so(nothing_stored: Unchanged) -> None:
    client = Client()
    asked = question(client)
    refusal = Answer(asked=asked, status="urn:oasis:names:tc:SAML:2.0:status:Responder")
    page = refused(client, asked, refusal.response(), nothing_stored)
    assert "Liar signed nobody in." in page


def test_an_answer_counts_once_and_in_the_browser_that_asked(nothing_stored: Unchanged) -> None:
    client, thief = Client(), Client()
    asked = question(client)
    own = question(thief)
    answer = Answer(asked=asked).signed()
    for lie in (sent(asked, answer), sent(own, answer)):
        with nothing_stored():
            assert posts(thief, "liar", lie).status_code == 403
    assert not is_in(thief)
    assert posts(client, "liar", sent(asked, answer)).status_code == 302
    again = posts(client, "liar", sent(asked, answer))
    assert again.status_code == 403
    assert "This answers no question that this browser still has." in again.content.decode()


def test_a_start_at_the_provider_lets_nobody_in(nothing_stored: Unchanged) -> None:
    """Or somebody could be signed in as another, whose account then gets what is theirs."""
    of = Answer(asked="", confirms=None, response_to=None)
    for state in ("", "https://berth.example/", "made-up"):
        client = Client()
        with nothing_stored():
            answer = posts(client, "liar", sent(state, of.signed()))
        assert (answer.status_code, is_in(client)) == (403, False)


def test_a_key_of_an_elliptic_curve_signs_too(settings: Settings) -> None:
    signer = Signer(ec.generate_private_key(ec.SECP256R1()))
    settings.BERTH_PROVIDERS = {"liar": told(signer)}
    client = Client()
    asked = question(client)
    of = Answer(asked=asked)
    document = of.response(signed(of.assertion(), by=signer, method=Transform.ECDSA_SHA256))
    assert posts(client, "liar", sent(asked, document)).status_code == 302
    assert is_in(client)


def test_either_certificate_of_a_provider_that_changes_its_key_will_do() -> None:
    for signer in (OWN, OTHER):
        client = Client()
        asked = question(client)
        of = Answer(asked=asked)
        document = of.response(signed(of.assertion(), by=signer))
        assert posts(client, "liar", sent(asked, document)).status_code == 302
