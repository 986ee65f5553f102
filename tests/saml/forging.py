"""Answers as a provider would give them, or as somebody who wants to be another would."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4
from zlib import decompress

import xmlsec
from django.test import Client
from django.urls import reverse
from lxml import etree
from lxml.builder import ElementMaker

from controlplane.kernel import clock
from controlplane.settings.saml import Saml
from tests.arriving import HERE, asked, is_in
from tests.conftest import Unchanged
from tests.saml.keys import Signer
from tests.saml.running import GROUPS, PERSISTENT, posts

type Element = Any  # lxml's, which has no types

SAML = "urn:oasis:names:tc:SAML:2.0:assertion"
SAMLP = "urn:oasis:names:tc:SAML:2.0:protocol"
DSIG = "http://www.w3.org/2000/09/xmldsig#"
BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success"
ENTITY_ID = "https://liar.example/idp"
OWN, OTHER = Signer(), Signer()
BELIEVED = "gave an answer that can&#x27;t be believed."
S = ElementMaker(namespace=SAML, nsmap={"saml": SAML})
P = ElementMaker(namespace=SAMLP, nsmap={"samlp": SAMLP, "saml": SAML})


def told(signer: Signer = OWN) -> Saml:
    """The provider whose answers are made here, as BERTH_SAML would have it."""
    return Saml(
        name="liar", label="Liar", entity_id=ENTITY_ID, sso_url="https://liar.example/sso",
        certificates=(OTHER.certificate, signer.certificate), groups_attribute=GROUPS,
    )  # fmt: skip


def question(client: Client) -> str:
    """The ID of what Berth asks of the provider when somebody wants to sign in."""
    [sent] = parse_qs(urlsplit(asked(client, "liar")).query)["SAMLRequest"]
    return str(etree.fromstring(decompress(b64decode(sent), wbits=-15)).get("ID"))


@dataclass(kw_only=True)
class Answer:
    """What a provider says to the question `asked`: sound, unless a field says otherwise. None
    leaves out what the field is of."""

    asked: str
    status: str = SUCCESS
    response_to: str | None = ""
    destination: str | None = ""
    issuer: str | None = ENTITY_ID
    response_issuer: str | None = ENTITY_ID
    name_id: str | None = "mallory"
    name: Mapping[str, str] = field(default_factory=lambda: {"Format": PERSISTENT})
    audiences: Sequence[str] = ("",)
    method: str = BEARER
    recipient: str | None = ""
    confirms: str | None = ""
    ends_s: int | None = 60
    confirms_from_s: int | None = None
    starts_s: int = -60
    conditions_end_s: int = 60
    attributes: Sequence[tuple[str, Sequence[str]]] = ((GROUPS, ("all",)),)

    def assertion(self) -> Element:
        name = [] if self.name_id is None else [S.NameID(self.name_id, **self.name)]
        to = HERE + reverse("provider-answer", args=["liar"])
        data = _attributes(
            Recipient=to if self.recipient == "" else self.recipient,
            InResponseTo=self.asked if self.confirms == "" else self.confirms,
            NotBefore=None if self.confirms_from_s is None else _at(self.confirms_from_s),
            NotOnOrAfter=None if self.ends_s is None else _at(self.ends_s),
        )
        confirmation = S.SubjectConfirmation(S.SubjectConfirmationData(**data), Method=self.method)
        here = HERE + reverse("provider-metadata", args=["liar"])
        conditions = S.Conditions(
            *(S.AudienceRestriction(S.Audience(each or here)) for each in self.audiences),
            NotBefore=_at(self.starts_s),
            NotOnOrAfter=_at(self.conditions_end_s),
        )
        by = S.AuthnContext(S.AuthnContextClassRef("urn:oasis:names:tc:SAML:2.0:ac:classes:X509"))
        told = [
            S.Attribute(*(S.AttributeValue(each) for each in values), Name=name)
            for name, values in self.attributes
        ]
        return S.Assertion(
            *([] if self.issuer is None else [S.Issuer(self.issuer)]),
            S.Subject(*name, confirmation),
            conditions,
            S.AuthnStatement(by, AuthnInstant=_at(0)),
            *([S.AttributeStatement(*told)] if told else []),
            ID=f"_{uuid4()}", Version="2.0", IssueInstant=_at(0),
        )  # fmt: skip

    def response(self, *assertions: Element) -> Element:
        here = HERE + reverse("provider-answer", args=["liar"])
        said = _attributes(
            InResponseTo=self.asked if self.response_to == "" else self.response_to,
            Destination=here if self.destination == "" else self.destination,
        )
        issuer = [] if self.response_issuer is None else [S.Issuer(self.response_issuer)]
        return P.Response(
            *issuer, P.Status(P.StatusCode(Value=self.status)), *assertions,
            ID=f"_{uuid4()}", Version="2.0", IssueInstant=_at(0), **said,
        )  # fmt: skip

    def signed(self) -> Element:
        return self.response(signed(self.assertion()))


def signed(
    element: Element,
    by: Signer = OWN,
    *,
    method: str = xmlsec.Transform.RSA_SHA256,
    digest: str = xmlsec.Transform.SHA256,
) -> Element:
    """A copy with an enveloped signature behind its issuer."""
    made = deepcopy(element)
    signature = xmlsec.template.create(made, xmlsec.Transform.EXCL_C14N, method)
    made.insert(made.index(made.find(f"{{{SAML}}}Issuer")) + 1, signature)
    reference = xmlsec.template.add_reference(signature, digest, uri=f"#{made.get('ID')}")
    xmlsec.template.add_transform(reference, xmlsec.Transform.ENVELOPED)
    xmlsec.template.add_transform(reference, xmlsec.Transform.EXCL_C14N)
    xmlsec.template.add_x509_data(xmlsec.template.ensure_key_info(signature))
    xmlsec.tree.add_ids(made, ["ID"])
    context = xmlsec.SignatureContext()
    context.key = xmlsec.Key.from_memory(by.key_pem, xmlsec.KeyFormat.PEM)
    context.key.load_cert_from_memory(by.certificate, xmlsec.KeyFormat.CERT_PEM)
    context.sign(signature)
    return made


def sent(asked: str, document: Element | bytes) -> dict[str, str]:
    """As a provider's page posts it."""
    text = document if isinstance(document, bytes) else etree.tostring(document)
    return {"SAMLResponse": b64encode(text).decode(), "RelayState": asked}


def _at(seconds: int) -> str:
    """So much from now."""
    return f"{clock.now() + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def _attributes(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def refused(client: Client, asked: str, document: Element | bytes, unchanged: Unchanged) -> str:
    """Berth's page, which it answers with 403."""
    with unchanged():
        answer = posts(client, "liar", sent(asked, document))
    assert (answer.status_code, is_in(client)) == (403, False)
    return answer.content.decode()
