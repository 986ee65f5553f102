"""Answers that the provider did not sign, or not so: nobody is signed in by them."""

from collections.abc import Callable
from copy import deepcopy

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from lxml import etree
from xmlsec import Transform

from tests.conftest import Unchanged
from tests.saml.forging import (
    BELIEVED,
    DSIG,
    OWN,
    SAML,
    Answer,
    Element,
    P,
    S,
    question,
    refused,
    sent,
    signed,
)
from tests.saml.keys import Signer
from tests.saml.running import posts

pytestmark = pytest.mark.usefixtures("liar")
EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"
XSLT = "http://www.w3.org/TR/1999/REC-xslt-19991116"


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
