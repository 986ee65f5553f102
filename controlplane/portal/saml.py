"""Signing in by SAML 2.0: Berth's question by a redirect, the provider's answer by a form.

What an assertion has to be is the Web Browser SSO Profile (SAML profiles, 4.1.4.2 and 4.1.4.3):
signed by a key of the provider, for this Berth, at this address, of now, and an answer to a
question of this browser. python3-saml checks the signature and what it covers; where it takes
something for optional that the profile asks for, `Answer` asks. What must not live here: whose
account it is and which roles they have (that is `tenants.services.arrivals`).
"""

from collections.abc import Mapping
from html import escape
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.helpers import complete_social_login
from allauth.socialaccount.providers.base import Provider
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from lxml import etree
from onelogin.saml2.authn_request import OneLogin_Saml2_Authn_Request
from onelogin.saml2.errors import OneLogin_Saml2_Error
from onelogin.saml2.metadata import OneLogin_Saml2_Metadata
from onelogin.saml2.response import OneLogin_Saml2_Response
from onelogin.saml2.settings import OneLogin_Saml2_Settings

from controlplane.kernel import clock
from controlplane.portal import arriving
from controlplane.portal.arriving import NotBelieved
from controlplane.settings.saml import Saml
from tenants.services.arrivals import Arrival

type Element = Any  # lxml's, which has no types
type Attributes = Mapping[str, list[Any]]  # Any: texts, and what else values may be

LONGEST_ANSWER = 256 * 1024
"""Characters in base64: some 200 kB of XML, two thousand groups of long names."""
_MOST_ELEMENTS = 10_000
_MOST_PREFIXES = 16

_DSIG = "http://www.w3.org/2000/09/xmldsig#"
_DSIG_MORE = "http://www.w3.org/2001/04/xmldsig-more#"
_ENVELOPED = f"{_DSIG}enveloped-signature"
_EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"
_CANONICAL = {"http://www.w3.org/TR/2001/REC-xml-c14n-20010315", _EXCLUSIVE}
_ALGORITHMS = {
    "CanonicalizationMethod": _CANONICAL,
    "SignatureMethod": {
        f"{_DSIG_MORE}{key}-sha{bits}" for key in ("rsa", "ecdsa") for bits in (256, 384, 512)
    },
    "Transform": {_ENVELOPED, *_CANONICAL},
    "DigestMethod": {
        "http://www.w3.org/2001/04/xmlenc#sha256",
        f"{_DSIG_MORE}sha384",
        "http://www.w3.org/2001/04/xmlenc#sha512",
    },
}
_BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
_SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success"
_TRANSIENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
_GROUPS_ELSEWHERE = "http://schemas.microsoft.com/claims/groups.link"
_NAMES = {
    "ds": _DSIG,
    "saml": "urn:oasis:names:tc:SAML:2.0:assertion",
    "samlp": "urn:oasis:names:tc:SAML:2.0:protocol",
    "ec": _EXCLUSIVE,
}


class AtProvider(Provider):
    """Asks one provider who somebody is, and takes its answer."""

    id = "saml"
    uses_apps = True
    supports_redirect = True

    @property
    def told(self) -> Saml:
        return cast(Saml, settings.BERTH_PROVIDERS[self.app.provider_id])

    def redirect(
        self,
        request: HttpRequest,
        process: str,
        next_url: str | None = None,
        data: object = None,
        **kwargs: Any,  # as allauth has it
    ) -> HttpResponse:
        """To the provider, with a question of which this browser's session keeps the name."""
        question = OneLogin_Saml2_Authn_Request(_settings(self.told))
        asked = self.stash_redirect_state(
            request, process, next_url, data, state_id=question.get_id(), **kwargs
        )
        query = urlencode({"SAMLRequest": question.get_request(), "RelayState": asked})
        joined = "&" if "?" in self.told.sso_url else "?"
        return HttpResponseRedirect(f"{self.told.sso_url}{joined}{query}")

    def comes_back(self, request: HttpRequest) -> HttpResponse:
        """Whoever the answer says, signed in. As the provider's page is another site, the browser
        comes without its session: it is had to post the same once more, from here.

        Raises NotBelieved for an answer that can't be believed; ImmediateHttpResponse for who was
        not signed in there, or may not come in."""
        sent, asked = (request.POST.get(name, "") for name in ("SAMLResponse", "RelayState"))
        if len(sent) > LONGEST_ANSWER:
            raise NotBelieved(f"its answer is longer than {LONGEST_ANSWER} characters")
        if "again" not in request.POST:
            again = {"at": self.app, "sent": {"SAMLResponse": sent, "RelayState": asked}}
            return render(request, "portal/provider_answer.html", again)
        try:
            state = self.unstash_redirect_state(request, asked)
        except PermissionDenied as error:
            said = "This answers no question that this browser still has. Start again."
            raise ImmediateHttpResponse(arriving.refusal(request, said, status=403)) from error
        answer = _parsed(self.told, sent)
        if (status := answer.status()) != _SUCCESS:
            said = f"it answered {status!a}"
            raise ImmediateHttpResponse(arriving.failed(request, self.app, said))
        answer.check(asked=asked)
        login = arriving.comes(request, self, answer.arrival())
        login.state.update(state)
        signed_in: HttpResponse = complete_social_login(request, login)
        return signed_in

    def metadata(self) -> str:
        """What the provider's administrator needs of Berth, as an EntityDescriptor in XML. It is
        of no secret, and of no end: its address says what is so now."""
        berth = _settings(self.told).get_sp_data()
        builder = OneLogin_Saml2_Metadata.builder
        return str(builder(berth, wsign=True, valid_until="", cache_duration=""))

    def serialize(self) -> dict[str, Any]:  # Any: as allauth has it
        """While somebody is asked for a second factor."""
        return {"id": self.app.provider_id}


class Answer(OneLogin_Saml2_Response):
    """What the provider `of` sent. Until `check` returned, nothing in it is to be believed."""

    def __init__(self, of: Saml, sent: str) -> None:
        super().__init__(_settings(of), sent)
        self.of = of

    def status(self) -> str:
        code = self.document.find("samlp:Status/samlp:StatusCode", _NAMES)
        if code is None:
            raise NotBelieved("it is no answer of SAML")
        return str(code.get("Value", ""))

    def check(self, *, asked: str) -> None:
        """Raises NotBelieved unless the provider says it, signed, for this Berth, and to the
        question `asked`."""
        for signature in self.document.iterfind(".//ds:Signature", _NAMES):
            _check_form(signature)
        here = _address("provider-answer", self.of)
        url = urlsplit(here)
        https = "on" if url.scheme == "https" else "off"
        sent_to = {"https": https, "http_host": url.netloc, "script_name": url.path}
        if not self.is_valid(sent_to, request_id=asked):
            raise NotBelieved(self.get_error())
        [assertion] = self._query_assertion("")
        if _texts(assertion, "saml:Issuer") != {self.of.entity_id}:
            raise NotBelieved("its assertion is another provider's")
        if self.get_in_response_to() != asked:
            raise NotBelieved("it answers another question")
        berth = _address("provider-metadata", self.of)
        restrictions = assertion.findall("saml:Conditions/saml:AudienceRestriction", _NAMES)
        if not restrictions or any(
            berth not in _texts(each, "saml:Audience") for each in restrictions
        ):
            raise NotBelieved("its assertion is for somebody else, or for anybody")
        confirmations = assertion.iterfind("saml:Subject/saml:SubjectConfirmation", _NAMES)
        if not any(_confirms(each, asked=asked, here=here) for each in confirmations):
            raise NotBelieved("its assertion is not for this question, at this address, of now")

    def arrival(self) -> Arrival:
        """Who came. Raises NotBelieved where that is not said, or can't be kept."""
        of, told = self.of, self.get_attributes()
        by = of.subject_attribute
        return arriving.arrival(
            of.name,
            subject=_single(told, by) if by else self._name_id(),
            username=_single(told, of.username_attribute),
            full_name=_single(told, of.name_attribute),
            email=_single(told, of.email_attribute),
            is_verified=True,  # or no attribute would be named
            groups=_groups(told, of.groups_attribute) if of.groups_attribute else None,
        )

    def _name_id(self) -> str:
        found = self._query_assertion("/saml:Subject/saml:NameID")
        if not found:
            raise NotBelieved("it names nobody by a NameID")
        [name] = found
        if name.get("Format") == _TRANSIENT:
            raise NotBelieved("its NameID is another one each time: let it send a persistent one")
        berth = _address("provider-metadata", self.of)
        if (
            name.get("NameQualifier", self.of.entity_id) != self.of.entity_id
            or name.get("SPNameQualifier", berth) != berth
        ):
            raise NotBelieved("its NameID is another provider's, or for another than Berth")
        return "".join(name.itertext()).strip()


def _settings(of: Saml) -> OneLogin_Saml2_Settings:
    return OneLogin_Saml2_Settings({
        "strict": True,
        "sp": {
            "entityId": _address("provider-metadata", of),
            "assertionConsumerService": {"url": _address("provider-answer", of)},
        },
        "idp": {
            "entityId": of.entity_id,
            "singleSignOnService": {"url": escape(of.sso_url)},  # goes into XML as it stands
            "x509certMulti": {"signing": list(of.certificates)},
        },
        "security": {
            "wantAssertionsSigned": True,
            "wantNameId": False,  # `Answer` looks for whichever names somebody
            "wantAttributeStatement": False,
            "requestedAuthnContext": False,
            "allowRepeatAttributeName": True,
            "allowSingleLabelDomains": True,
        },
    })  # fmt: skip


def _address(name: str, of: Saml) -> str:
    """By which the provider knows Berth, whatever name it was reached by."""
    return f"{settings.BERTH_PUBLIC_URL}{reverse(name, args=[of.name])}"


def _parsed(of: Saml, sent: str) -> Answer:
    try:
        answer = Answer(of, sent)
    except (OneLogin_Saml2_Error, ValueError, etree.LxmlError) as error:
        raise NotBelieved(f"its answer can't be read: {error}") from error
    if sum(1 for _ in answer.document.iter()) > _MOST_ELEMENTS:
        raise NotBelieved(f"its answer has more than {_MOST_ELEMENTS} elements")
    return answer


def _check_form(signature: Element) -> None:
    """What SAML core 5.4 lets a signature say, and nothing more. Before anything is verified: to
    verify is to do what it says, to fetch what it names and to transform it by its program."""
    for each in signature.iter():  # xmlsec takes a:Algorithm for Algorithm
        if any(name.startswith("{") for name in each.attrib):
            raise NotBelieved("its signature has an attribute of another namespace")
    for name, known in _ALGORITHMS.items():
        if not {*_algorithms(signature, name)} <= known:
            raise NotBelieved(f"its signature has a {name} that is not taken")
    match _algorithms(signature, "Transform"):
        case [first] | [first, _] if first == _ENVELOPED:
            pass
        case _:
            raise NotBelieved("its signature has other transforms than are taken")
    for each in signature.iterfind(".//ec:InclusiveNamespaces", _NAMES):
        if len(each.get("PrefixList", "").split()) > _MOST_PREFIXES:
            raise NotBelieved(f"its signature names more than {_MOST_PREFIXES} prefixes")
    signed = [each.get("URI") for each in signature.iterfind(".//ds:Reference", _NAMES)]
    if signed != [f"#{signature.getparent().get('ID')}"]:
        raise NotBelieved("its signature is of something else than where it stands")


def _algorithms(signature: Element, name: str) -> list[str | None]:
    return [each.get("Algorithm") for each in signature.iterfind(f".//ds:{name}", _NAMES)]


def _confirms(confirmation: Element, *, asked: str, here: str) -> bool:
    """Whether it is as SAML profiles 4.1.4.2 has it for whoever bears the assertion."""
    data = confirmation.find("saml:SubjectConfirmationData", _NAMES)
    if confirmation.get("Method") != _BEARER or data is None:
        return False
    try:
        ends = parse_datetime(data.get("NotOnOrAfter", ""))
    except ValueError:  # midnight as 24:00:00
        return False
    if ends is None or ends.tzinfo is None or ends <= clock.now() or "NotBefore" in data.attrib:
        return False
    return (data.get("InResponseTo"), data.get("Recipient")) == (asked, here)


def _texts(of: Element, name: str) -> set[str]:
    return {"".join(each.itertext()).strip() for each in of.iterfind(name, _NAMES)}


def _single(told: Attributes, name: str) -> object:
    """Its one value; None where it has none, or several."""
    values = told.get(name, [])
    return values[0] if len(values) == 1 else None


def _groups(told: Attributes, name: str) -> frozenset[str]:
    are_elsewhere = name not in told and _GROUPS_ELSEWHERE in told
    return arriving.groups(told.get(name, []), are_elsewhere=are_elsewhere)
