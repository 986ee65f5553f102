"""Signing in by OpenID Connect: allauth's flow of codes, with Berth's check of who came back.

What an ID token has to be is OpenID Connect Core 3.1.3.7: signed by a key of the provider, for
this client, by this issuer, of now, and an answer to this browser's question. What must not live
here: whose account it is and which roles they have (that is `tenants.services.arrivals`).
"""

import hashlib
import hmac
from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

import jwt
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from controlplane.portal import arriving
from controlplane.portal.arriving import NotBelieved
from controlplane.settings.oidc import OpenIDConnect
from tenants.services.arrivals import Arrival

type Claims = Mapping[str, Any]  # Any: JSON values

_SIGNED_BY = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
"""By a key pair of the provider's; never by a secret that both have, and never unsigned."""
_TOLD = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_CLOCKS_DIFFER_S = 60


class Exchange(OpenIDConnectOAuth2Adapter):
    """What is said to one provider, and what it answers."""

    _nonce = ""

    @property
    def told(self) -> OpenIDConnect:
        return _told(self.provider_id)

    @cached_property
    def openid_config(self) -> Claims:
        """What the provider says of itself. Raises NotBelieved when it is not who it should be."""
        url = f"{self.told.issuer.rstrip('/')}/.well-known/openid-configuration"
        with get_adapter(self.request).get_requests_session() as session:
            answer = session.get(url)
            answer.raise_for_status()
            config = answer.json()
        if not isinstance(config, dict) or config.get("issuer") != self.told.issuer:
            raise NotBelieved("it calls itself another issuer than the one in BERTH_OIDC")
        if lacking := [each for each in _TOLD if not isinstance(config.get(each), str)]:
            raise NotBelieved(f"it does not tell its {lacking[0]}")
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
        NotBelieved for an answer that is not to be believed, ImmediateHttpResponse for somebody
        who may not come in."""
        claims = dict(self._identity(kwargs["response"].get("id_token")))
        if "userinfo_endpoint" in self.openid_config:
            more: Claims = self._fetch_user_info(token.token)
            if not isinstance(more, dict) or more.get("sub") != claims["sub"]:
                raise NotBelieved("its user info is of somebody else than its ID token")
            claims |= more
        return arriving.comes(request, self.get_provider(), _arrival(self.told, claims))

    def _identity(self, id_token: object) -> Claims:
        if not isinstance(id_token, str):
            raise NotBelieved("it sent no ID token")
        with get_adapter(self.request).get_requests_session() as session:
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
            raise NotBelieved(f"its ID token does not hold: {error}") from error
        if claims.get("azp", self.told.client_id) != self.told.client_id:
            raise NotBelieved("its ID token was made for another client")
        if not hmac.compare_digest(str(claims["nonce"]), self._nonce):
            raise NotBelieved("its ID token answers another question")
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


def check_sender(request: HttpRequest, at: AtProvider) -> None:
    """Who says who they are has to be whom we asked (RFC 9207). Raises NotBelieved."""
    issuer = _told(at.app.provider_id).issuer
    if request.GET.get("iss", issuer) != issuer:
        raise NotBelieved("the answer is of another issuer")


def _told(name: str) -> OpenIDConnect:
    return cast(OpenIDConnect, settings.BERTH_PROVIDERS[name])


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


def _arrival(of: OpenIDConnect, claims: Claims) -> Arrival:
    return arriving.arrival(
        of.name,
        subject=claims["sub"],
        username=claims.get("preferred_username"),
        full_name=claims.get("name"),
        email=claims.get("email"),
        is_verified=claims.get("email_verified") is True,
        groups=_groups(claims, of.groups_claim) if of.groups_claim else None,
    )


def _groups(claims: Claims, name: str) -> frozenset[str]:
    elsewhere = claims.get("_claim_names")
    told = claims.get(name) or []
    return arriving.groups(
        [told] if isinstance(told, str) else told,
        are_elsewhere=isinstance(elsewhere, dict) and name in elsewhere,
    )
