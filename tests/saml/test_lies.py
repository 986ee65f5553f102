"""What a SAML provider, or somebody between, may say wrong: nobody is signed in."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client
from django.urls import reverse
from lxml import etree
from pytest_django import Settings
from xmlsec import Transform

from controlplane.kernel import clock
from tenants.access import actor_for
from tenants.models import Role
from tenants.services import group_roles
from tests import factories
from tests.conftest import Cast, Unchanged
from tests.saml.forging import (
    DSIG,
    OTHER,
    OWN,
    SAML,
    Answer,
    Element,
    P,
    S,
    question,
    sent,
    signed,
    told,
)
from tests.saml.keys import Signer
from tests.saml.running import GROUPS, HERE, posts

BELIEVED = "gave an answer that can&#x27;t be believed."
TRANSIENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"
XSLT = "http://www.w3.org/TR/1999/REC-xslt-19991116"


@pytest.fixture(autouse=True)
def liar(cast: Cast, settings: Settings) -> None:
    """Its group "all" may see Speech Lab."""
    settings.BERTH_PROVIDERS = {"liar": told()}
    settings.BERTH_PUBLIC_URL = HERE
    fay = factories.user("fay")
    factories.member(fay, Role.OWNER)
    group_roles.add(
        actor=actor_for(user=fay), provider="liar", group="all", role=Role.VIEWER,
        place=cast.speech, at=clock.now(),
    )  # fmt: skip


def is_in(client: Client) -> bool:
    return client.get(reverse("home")).status_code == 200


def refused(client: Client, asked: str, document: Element | bytes, unchanged: Unchanged) -> str:
    """Berth's page, which it answers with 403."""
    with unchanged():
        answer = posts(client, "liar", sent(asked, document))
    assert (answer.status_code, is_in(client)) == (403, False)
    return answer.content.decode()


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


def _unsigned(of: Answer) -> Element:
    return of.response(of.assertion())


def _message_alone_is_signed(of: Answer) -> Element:
    return signed(of.response(of.assertion()))


def _by_another_key(of: Answer) -> Element:
    return of.response(signed(of.assertion(), by=Signer()))


def _by_a_key_of_which_it_has_the_certificate(of: Answer) -> Element:
    """The right certificate stands beside a signature of another key."""
    thief = Signer()
    thief.certificate = OWN.certificate
    return of.response(signed(of.assertion(), by=thief))


def _with_sha1(of: Answer) -> Element:
    return of.response(signed(of.assertion(), method=Transform.RSA_SHA1))


def _with_sha1_of_the_contents(of: Answer) -> Element:
    return of.response(signed(of.assertion(), digest=Transform.SHA1))


def _changed_afterwards(of: Answer) -> Element:
    document = of.signed()
    document.find(f".//{{{SAML}}}NameID").text = "ada"
    return document


def _group_added_afterwards(of: Answer) -> Element:
    document = of.signed()
    document.find(f".//{{{SAML}}}Attribute").append(S.AttributeValue("bosses"))
    return document


def _signature_taken_from_another(of: Answer) -> Element:
    forged = of.assertion()
    forged.insert(1, signed(of.assertion()).find(f"{{{DSIG}}}Signature"))
    return of.response(forged)


def _signature_of_the_whole_document(of: Answer) -> Element:
    document = of.signed()
    document.find(f".//{{{DSIG}}}Reference").set("URI", "")
    return document


def _fetches(of: Answer) -> Element:
    """A second reference, which whoever verifies would fetch before it knows who asks for it."""
    document = of.signed()
    reference = document.find(f".//{{{DSIG}}}Reference")
    another = deepcopy(reference)
    another.remove(another.find(f"{{{DSIG}}}Transforms"))
    another.set("URI", "http://127.0.0.1:9/internal")
    reference.addnext(another)
    return document


def _is_a_program(of: Answer) -> Element:
    document = of.signed()
    document.find(f".//{{{DSIG}}}Transform").set("Algorithm", XSLT)
    return document


def _is_a_program_behind_another_name(of: Answer) -> Element:
    """xmlsec reads the first attribute of a name, whatever its namespace."""
    document = of.signed()
    transform = document.findall(f".//{{{DSIG}}}Transform")[1]
    algorithm = transform.attrib.pop("Algorithm")
    transform.set("{urn:x}Algorithm", XSLT)
    transform.set("Algorithm", algorithm)
    return document


def _is_transformed_often(of: Answer) -> Element:
    document = of.signed()
    transform = document.findall(f".//{{{DSIG}}}Transform")[1]
    for _ in range(600):
        transform.addnext(deepcopy(transform))
    return document


def _is_transformed_by_itself_twice(of: Answer) -> Element:
    document = of.signed()
    first, second = document.findall(f".//{{{DSIG}}}Transform")
    second.addnext(first)
    return document


def _names_many_prefixes(of: Answer) -> Element:
    document = of.signed()
    transform = document.findall(f".//{{{DSIG}}}Transform")[1]
    inclusive = transform.makeelement(f"{{{EXCLUSIVE}}}InclusiveNamespaces")
    inclusive.set("PrefixList", "xs " * 17)
    transform.append(inclusive)
    return document


def _is_canonical_otherwise(of: Answer) -> Element:
    document = of.signed()
    document.find(f".//{{{DSIG}}}CanonicalizationMethod").set(
        "Algorithm", f"{EXCLUSIVE}WithComments"
    )
    return document


def _by_a_secret(of: Answer) -> Element:
    document = of.signed()
    method = document.find(f".//{{{DSIG}}}SignatureMethod")
    method.set("Algorithm", "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256")
    return document


UNSIGNED = "The Assertion of the Response is not signed"
WRONG = "Signature validation failed"
MOVED = "its signature is of something else than where it stands"


@pytest.mark.parametrize(
    ("forged", "logged"),
    [
        (_unsigned, UNSIGNED),
        (_message_alone_is_signed, UNSIGNED),
        (_by_another_key, WRONG),
        (_by_a_key_of_which_it_has_the_certificate, WRONG),
        (_with_sha1, "a SignatureMethod that is not taken"),
        (_with_sha1_of_the_contents, "a DigestMethod that is not taken"),
        (_changed_afterwards, WRONG),
        (_group_added_afterwards, WRONG),
        (_signature_taken_from_another, MOVED),
        (_signature_of_the_whole_document, MOVED),
        (_fetches, MOVED),
        (_is_a_program, "a Transform that is not taken"),
        (_is_a_program_behind_another_name, "an attribute of another namespace"),
        (_is_transformed_often, "other transforms than are taken"),
        (_is_transformed_by_itself_twice, "other transforms than are taken"),
        (_names_many_prefixes, "names more than 16 prefixes"),
        (_is_canonical_otherwise, "a CanonicalizationMethod that is not taken"),
        (_by_a_secret, "a SignatureMethod that is not taken"),
    ],
)
def test_an_answer_that_the_provider_did_not_sign_lets_nobody_in(
    forged: Callable[[Answer], Element],
    logged: str,
    nothing_stored: Unchanged,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = Client()
    asked = question(client)
    document = forged(Answer(asked=asked))
    assert BELIEVED in refused(client, asked, document, nothing_stored)
    assert logged in caplog.text


def _evil(of: Answer, real: Element, *, same_id: bool) -> Element:
    """An assertion that says that somebody else came, like one that is signed."""
    forged = deepcopy(real)
    forged.remove(forged.find(f"{{{DSIG}}}Signature"))
    forged.find(f".//{{{SAML}}}NameID").text = "ada"
    if not same_id:
        forged.set("ID", "_evil")
    return forged


def _beside(of: Answer, real: Element, *, same_id: bool) -> Element:
    return of.response(_evil(of, real, same_id=same_id), real)


def _behind(of: Answer, real: Element, *, same_id: bool) -> Element:
    return of.response(real, _evil(of, real, same_id=same_id))


def _around(of: Answer, real: Element, *, same_id: bool) -> Element:
    forged = _evil(of, real, same_id=same_id)
    forged.append(real)
    return of.response(forged)


def _in_the_signature(of: Answer, real: Element, *, same_id: bool) -> Element:
    forged = _evil(of, real, same_id=same_id)
    signature = real.find(f"{{{DSIG}}}Signature")
    real.remove(signature)
    forged.insert(1, signature)
    holds = signature.makeelement(f"{{{DSIG}}}Object")
    holds.append(real)
    signature.append(holds)
    return of.response(forged)


def _in_extensions(of: Answer, real: Element, *, same_id: bool) -> Element:
    document = of.response(_evil(of, real, same_id=same_id))
    document.insert(1, P.Extensions(real))
    return document


@pytest.mark.parametrize("same_id", [False, True])
@pytest.mark.parametrize("wrapped", [_beside, _behind, _around, _in_the_signature, _in_extensions])
def test_what_is_signed_says_nothing_of_what_is_beside_it(
    wrapped: Callable[..., Element],
    same_id: bool,
    nothing_stored: Unchanged,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Signature wrapping, of a real answer to this very question."""
    client = Client()
    asked = question(client)
    of = Answer(asked=asked)
    document = wrapped(of, signed(of.assertion()), same_id=same_id)
    assert BELIEVED in refused(client, asked, document, nothing_stored)
    assert "must contain 1 assertion" in caplog.text or MOVED in caplog.text


def test_a_comment_cuts_no_name_short() -> None:
    """What is signed has no comments, so one may be put into it."""
    client = Client()
    asked = question(client)
    text = etree.tostring(Answer(asked=asked, name_id="mallory.evil").signed())
    cut = text.replace(b"mallory.evil", b"mallory<!-- -->.evil")
    assert cut != text
    assert posts(client, "liar", sent(asked, cut)).status_code == 302
    assert SocialAccount.objects.get(provider="liar").uid == "mallory.evil"


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
