"""Signing in by OpenID Connect: allauth's flow of codes, with Berth's check of who came back.

What an ID token has to be is OpenID Connect Core 3.1.3.7: signed by a key of the provider, for
this client, by this issuer, of now, and an answer to this browser's question. What must not live
here: whose account it is and which roles they have (that is `tenants.services.arrivals`).
"""

import hashlib
import hmac
import logging
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import jwt
import requests
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.kernel import clock, text
from controlplane.kernel.errors import NotAllowed
from controlplane.settings.oidc import Provider
from tenants.models import MAX_GROUP
from tenants.services import arrivals
from tenants.services.arrivals import Arrival

logger = logging.getLogger(__name__)

type Claims = Mapping[str, Any]  # Any: JSON values

_SIGNED_BY = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
"""By a key pair of the provider's; never by a secret that both have, and never unsigned."""
_TOLD = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_CLOCKS_DIFFER_S = 60
_LONGEST_SUBJECT = 191  # allauth's column
_MOST_GROUPS = 2000
_GROUPS_SHOWN = 20


class Exchange(OpenIDConnectOAuth2Adapter):
    """What is said to one provider, and what it answers."""

    _nonce = ""

    @property
    def told(self) -> Provider:
        found: Provider = settings.BERTH_OIDC[self.provider_id]
        return found

    @cached_property
    def openid_config(self) -> Claims:
        """What the provider says of itself. Raises OAuth2Error when it is not who it should be."""
        url = f"{self.told.issuer.rstrip('/')}/.well-known/openid-configuration"
        with Providers(self.request).get_requests_session() as session:
            answer = session.get(url)
            answer.raise_for_status()
            config = answer.json()
        if not isinstance(config, dict) or config.get("issuer") != self.told.issuer:
            raise OAuth2Error("it calls itself another issuer than the one in BERTH_OIDC")
        if lacking := [each for each in _TOLD if not isinstance(config.get(each), str)]:
            raise OAuth2Error(f"it does not tell its {lacking[0]}")
        return config

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return request.build_absolute_uri(reverse("provider-back", args=[self.provider_id]))

    def get_access_token_data(
        self,
        request: HttpRequest,
        app: SocialApp,
        client: Any,  # as allauth has it
        pkce_code_verifier: str | None = None,
    ) -> Any:
        self._nonce = _nonce(pkce_code_verifier or "")
        return super().get_access_token_data(request, app, client, pkce_code_verifier)

    def complete_login(
        self,
        request: HttpRequest,
        app: SocialApp,
        token: SocialToken,
        **kwargs: Any,  # as allauth has it
    ) -> SocialLogin:
        """The account of who came, whose roles are those that their groups have now. Raises
        OAuth2Error for an answer that is not to be believed, ImmediateHttpResponse for somebody
        who may not come in."""
        claims = dict(self._identity(kwargs["response"].get("id_token")))
        if "userinfo_endpoint" in self.openid_config:
            more: Claims = self._fetch_user_info(token.token)
            if not isinstance(more, dict) or more.get("sub") != claims["sub"]:
                raise OAuth2Error("its user info is of somebody else than its ID token")
            claims |= more
        arrival = _arrival(self.told, claims)
        try:
            arrivals.arrive(arrival, at=clock.now())
        except NotAllowed as error:
            shown = sorted(arrival.groups or ())[:_GROUPS_SHOWN]
            answer = refusal(request, error.message, groups=shown, status=403)
            raise ImmediateHttpResponse(answer) from error
        account = SocialAccount(provider=arrival.provider, uid=arrival.subject)
        return SocialLogin(account=account, provider=self.get_provider())

    def _identity(self, id_token: object) -> Claims:
        if not isinstance(id_token, str):
            raise OAuth2Error("it sent no ID token")
        with Providers(self.request).get_requests_session() as session:
            answer = session.get(self.openid_config["jwks_uri"])
            answer.raise_for_status()
        try:
            claims: Claims = jwt.decode(
                id_token,
                key=_key_of(id_token, answer.json()),
                algorithms=_SIGNED_BY,
                audience=self.told.client_id,
                issuer=self.told.issuer,
                leeway=_CLOCKS_DIFFER_S,
                options={"require": ["iss", "sub", "aud", "exp", "iat", "nonce"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise OAuth2Error(f"its ID token does not hold: {error}") from error
        if claims.get("azp", self.told.client_id) != self.told.client_id:
            raise OAuth2Error("its ID token was made for another client")
        if not hmac.compare_digest(str(claims["nonce"]), self._nonce):
            raise OAuth2Error("its ID token answers another question")
        return claims


class AtProvider(OpenIDConnectProvider):
    """Asks with PKCE, and with a nonce that only this browser's session can tell."""

    oauth2_adapter_class = Exchange

    def get_pkce_params(self) -> dict[str, Any]:  # Any: as allauth has it
        asked: dict[str, Any] = super().get_pkce_params()
        return {**asked, "nonce": _nonce(asked["code_verifier"])}

    def serialize(self) -> dict[str, Any]:  # Any: as allauth has it
        """While somebody is asked for a second factor: by name, as two may have one client id."""
        return {"id": self.app.provider_id}


class Providers(DefaultSocialAccountAdapter):
    """Those of BERTH_OIDC and no others: rows that allauth keeps would hold their secrets."""

    def list_apps(
        self,
        request: HttpRequest | None,
        provider: str | None = None,
        client_id: str | None = None,
    ) -> list[SocialApp]:
        found: Iterable[Provider] = settings.BERTH_OIDC.values()
        return [_app(each) for each in found if provider in {None, each.name}]

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: str | None = None
    ) -> AtProvider:
        return AtProvider(request, app=self.get_app(request, provider))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        sociallogin.token = None  # nothing is asked of the provider any more

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False  # accounts are made before allauth looks for one

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: AtProvider,
        error: str | None = None,
        exception: Exception | None = None,
        extra_context: Mapping[str, object] | None = None,
    ) -> None:
        """Raises ImmediateHttpResponse: a page that says it without what the provider sent."""
        answer = failed(request, provider.app, exception or f"it answered {error}")
        raise ImmediateHttpResponse(answer)


def failed(request: HttpRequest, app: SocialApp, why: Exception | str) -> HttpResponse:
    """The page of a provider that does not answer, or not as it should; why is in the log."""
    logger.warning("signing in by %s failed: %s", app.provider_id, why)
    if isinstance(why, requests.RequestException):
        return refusal(request, f"{app.name} does not answer. Try again in a minute.", status=503)
    if isinstance(why, str):
        return refusal(request, f"{app.name} signed nobody in. Start again.", status=403)
    return refusal(request, f"{app.name} gave an answer that can't be believed.", status=403)


def check_sender(request: HttpRequest, at: AtProvider) -> None:
    """Who says who they are has to be whom we asked (RFC 9207). Raises OAuth2Error."""
    issuer = settings.BERTH_OIDC[at.app.provider_id].issuer
    if request.GET.get("iss", issuer) != issuer:
        raise OAuth2Error("the answer is of another issuer")


def refusal(
    request: HttpRequest, message: str, *, groups: Iterable[str] = (), status: int
) -> HttpResponse:
    """The page that says why nobody was signed in; `groups` are what the provider told."""
    context = {"message": message, "groups": list(groups)}
    return render(request, "portal/provider_refusal.html", context, status=status)


def _app(of: Provider) -> SocialApp:
    return SocialApp(
        provider=OpenIDConnectProvider.id,
        provider_id=of.name,
        name=of.label,
        client_id=of.client_id,
        secret=of.client_secret,
        settings={
            "server_url": of.issuer.rstrip("/"),
            "oauth_pkce_enabled": True,
            "scope": of.scopes.split(),
        },
    )


def _nonce(code_verifier: str) -> str:
    """Made of what only this browser's session holds, so it need not be kept beside it."""
    return hashlib.sha256(b"berth nonce " + code_verifier.encode()).hexdigest()


def _key_of(id_token: str, keys: object) -> jwt.PyJWK:
    """The provider's key that the token names. Raises PyJWTError when there is none."""
    if not isinstance(keys, dict):
        raise jwt.PyJWTError("its keys are no set")
    known = [each for each in jwt.PyJWKSet.from_dict(keys).keys if each.public_key_use != "enc"]
    named = jwt.get_unverified_header(id_token).get("kid")
    fitting = [each for each in known if named in {None, each.key_id}]
    if len(fitting) != 1:
        raise jwt.PyJWTError("no one key of its signs it")
    return fitting[0]


def _arrival(of: Provider, claims: Claims) -> Arrival:
    subject = claims["sub"]
    if not isinstance(subject, str) or not 1 <= len(subject) <= _LONGEST_SUBJECT:
        raise OAuth2Error(f"its subject is no text of 1 to {_LONGEST_SUBJECT} characters")
    email = _text(claims, "email")
    names = (_text(claims, "preferred_username"), email.partition("@")[0])
    return Arrival(
        provider=of.name,
        subject=subject,
        names=tuple(filter(None, names)),
        full_name=_text(claims, "name"),
        email=email if claims.get("email_verified") is True else "",
        groups=_groups(claims, of.groups_claim) if of.groups_claim else None,
    )


def _text(claims: Claims, name: str) -> str:
    """ "" for what is none, or can't be shown."""
    value = claims.get(name)
    return value if isinstance(value, str) and len(value) <= 254 and not text.fault(value) else ""


def _groups(claims: Claims, name: str) -> frozenset[str]:
    """Raises OAuth2Error for what names no groups: nobody loses their roles for a fault."""
    elsewhere = claims.get("_claim_names")
    if isinstance(elsewhere, dict) and name in elsewhere:
        raise OAuth2Error("it has too many groups to name them: let it name those of Berth alone")
    told = claims.get(name) or []
    listed = [told] if isinstance(told, str) else told
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise OAuth2Error("its groups are no list of names")
    if len(listed) > _MOST_GROUPS:
        raise OAuth2Error(f"it names more than {_MOST_GROUPS} groups")
    return frozenset(each for each in listed if each and len(each) <= MAX_GROUP)
