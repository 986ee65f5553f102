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

_DSIG = "http://www.w3.org/2000/09/xmldsig#"
_DSIG_MORE = "http://www.w3.org/2001/04/xmldsig-more#"
_PLAIN = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
_EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"
_CANONICAL = {_PLAIN, f"{_PLAIN}#WithComments", _EXCLUSIVE, f"{_EXCLUSIVE}WithComments"}
_ALGORITHMS = {
    "CanonicalizationMethod": _CANONICAL,
    "SignatureMethod": {
        f"{_DSIG_MORE}{key}-sha{bits}" for key in ("rsa", "ecdsa") for bits in (256, 384, 512)
    },
    "Transform": {f"{_DSIG}enveloped-signature", *_CANONICAL},
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
        question = OneLogin_Saml2_Authn_Request(self._settings(request))
        asked = self.stash_redirect_state(
            request, process, next_url, data, state_id=question.get_id(), **kwargs
        )
        query = urlencode({"SAMLRequest": question.get_request(), "RelayState": asked})
        joined = "&" if "?" in self.told.sso_url else "?"
        return HttpResponseRedirect(f"{self.told.sso_url}{joined}{query}")

    def comes_back(self, request: HttpRequest) -> HttpResponse:
        """Whoever the answer says, signed in. Raises NotBelieved for an answer that can't be
        believed; ImmediateHttpResponse for who was not signed in there, or may not come in."""
        asked = request.POST.get("RelayState", "")
        try:
            state = self.unstash_redirect_state(request, asked)
        except PermissionDenied as error:
            said = "This answers no question that this browser still has. Start again."
            raise ImmediateHttpResponse(arriving.refusal(request, said, status=403)) from error
        answer = _parsed(self._settings(request), request.POST.get("SAMLResponse", ""))
        if (status := answer.status()) != _SUCCESS:
            said = f"it answered {status!a}"
            raise ImmediateHttpResponse(arriving.failed(request, self.app, said))
        answer.check(asked=asked, here=_address(request, "provider-answer", self.told))
        login = arriving.comes(request, self, answer.arrival(self.told))
        login.state = state
        signed_in: HttpResponse = complete_social_login(request, login)
        return signed_in

    def metadata(self, request: HttpRequest) -> str:
        """What the provider's administrator needs of Berth, as an EntityDescriptor in XML. It is
        of no secret, and of no end: its address says what is so now."""
        of = self._settings(request)
        told = of.get_sp_data()
        return str(
            OneLogin_Saml2_Metadata.builder(told, wsign=True, valid_until="", cache_duration="")
        )

    def serialize(self) -> dict[str, Any]:  # Any: as allauth has it
        """While somebody is asked for a second factor."""
        return {"id": self.app.provider_id}

    def _settings(self, request: HttpRequest) -> OneLogin_Saml2_Settings:
        of = self.told
        return OneLogin_Saml2_Settings({
            "strict": True,
            "sp": {
                "entityId": _address(request, "provider-metadata", of),
                "assertionConsumerService": {"url": _address(request, "provider-answer", of)},
            },
            "idp": {
                "entityId": of.entity_id,
                # It goes into XML as it stands.
                "singleSignOnService": {"url": escape(of.sso_url)},
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


class Answer(OneLogin_Saml2_Response):
    """A provider's answer. Until `check` returned, nothing in it is to be believed."""

    def status(self) -> str:
        code = self.document.find("samlp:Status/samlp:StatusCode", _NAMES)
        if code is None:
            raise NotBelieved("it is no answer of SAML")
        return str(code.get("Value", ""))

    def check(self, *, asked: str, here: str) -> None:
        """Raises NotBelieved unless the provider says it, signed, to the question `asked` and for
        the address `here`."""
        for signature in self.document.iterfind(".//ds:Signature", _NAMES):
            _check_form(signature)
        url = urlsplit(here)
        https = "on" if url.scheme == "https" else "off"
        sent_to = {"https": https, "http_host": url.netloc, "script_name": url.path}
        if not self.is_valid(sent_to, request_id=asked):
            raise NotBelieved(self.get_error())
        [assertion] = self._query_assertion("")
        if self.get_in_response_to() != asked:
            raise NotBelieved("it answers another question")
        restrictions = assertion.findall("saml:Conditions/saml:AudienceRestriction", _NAMES)
        berth = self._settings.get_sp_data()["entityId"]
        if not restrictions or not all(berth in _texts(each) for each in restrictions):
            raise NotBelieved("its assertion is for somebody else, or for anybody")
        confirmations = assertion.iterfind("saml:Subject/saml:SubjectConfirmation", _NAMES)
        if not any(_confirms(each, asked=asked, here=here) for each in confirmations):
            raise NotBelieved("its assertion is not for this question, at this address, of now")

    def arrival(self, of: Saml) -> Arrival:
        """Who came. Raises NotBelieved where that is not said, or can't be kept."""
        told: Attributes = self.get_attributes()
        email = arriving.shown(_single(told, of.email_attribute))
        names = (arriving.shown(_single(told, of.username_attribute)), email.partition("@")[0])
        return Arrival(
            provider=of.name,
            subject=arriving.subject(
                _single(told, of.subject_attribute) if of.subject_attribute else self._name_id(of)
            ),
            names=tuple(filter(None, names)),
            full_name=arriving.shown(_single(told, of.name_attribute)),
            email=email,
            groups=_groups(told, of.groups_attribute) if of.groups_attribute else None,
        )

    def _name_id(self, of: Saml) -> str:
        found = self._query_assertion("/saml:Subject/saml:NameID")
        if not found:
            raise NotBelieved("it names nobody by a NameID")
        if found[0].get("Format") == _TRANSIENT:
            raise NotBelieved("its NameID is another one each time: let it send a persistent one")
        if found[0].get("NameQualifier", of.entity_id) != of.entity_id:
            raise NotBelieved("its NameID is another provider's")
        return "".join(found[0].itertext())


def _parsed(of: OneLogin_Saml2_Settings, sent: str) -> Answer:
    if len(sent) > LONGEST_ANSWER:
        raise NotBelieved(f"its answer is longer than {LONGEST_ANSWER} characters")
    try:
        return Answer(of, sent)
    except (OneLogin_Saml2_Error, ValueError, etree.LxmlError) as error:
        raise NotBelieved(f"its answer can't be read: {error}") from error


def _check_form(signature: Element) -> None:
    """What SAML core 5.4 lets a signature say, and nothing more. Before anything is verified: to
    verify is to do what it says, to fetch what it names and to transform it by its program."""
    for name, known in _ALGORITHMS.items():
        used = {each.get("Algorithm") for each in signature.iterfind(f".//ds:{name}", _NAMES)}
        if not used <= known:
            raise NotBelieved(f"its signature has a {name} that is not taken")
    signed = [each.get("URI") for each in signature.iterfind(".//ds:Reference", _NAMES)]
    if signed != [f"#{signature.getparent().get('ID')}"]:
        raise NotBelieved("its signature is of something else than where it stands")


def _confirms(confirmation: Element, *, asked: str, here: str) -> bool:
    """Whether it is as SAML profiles 4.1.4.2 has it for whoever bears the assertion."""
    data = confirmation.find("saml:SubjectConfirmationData", _NAMES)
    if confirmation.get("Method") != _BEARER or data is None:
        return False
    ends = parse_datetime(data.get("NotOnOrAfter", ""))
    is_of_now = ends is not None and ends.tzinfo is not None and ends > clock.now()
    return is_of_now and (data.get("InResponseTo"), data.get("Recipient")) == (asked, here)


def _texts(of: Element) -> set[str]:
    return {"".join(each.itertext()).strip() for each in of}


def _single(told: Attributes, name: str) -> object:
    """Its one value; None where it has none, or several."""
    values = told.get(name, [])
    return values[0] if len(values) == 1 else None


def _groups(told: Attributes, name: str) -> frozenset[str]:
    if name not in told and _GROUPS_ELSEWHERE in told:
        raise NotBelieved("it has too many groups to name them: let it name those of Berth alone")
    return arriving.groups(told.get(name, []))


def _address(request: HttpRequest, name: str, of: Saml) -> str:
    return request.build_absolute_uri(reverse(name, args=[of.name]))
