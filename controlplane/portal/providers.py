"""The providers that people sign in by, as allauth asks for them."""

from collections.abc import Iterable, Mapping

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.base import Provider as AtProvider
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.conf import settings
from django.http import HttpRequest

from controlplane.portal import oidc
from controlplane.portal.arriving import failed
from controlplane.settings.oidc import OpenIDConnect
from controlplane.settings.providers import Provider


class Providers(DefaultSocialAccountAdapter):
    """Those of the settings and no others: rows that allauth keeps would hold their secrets."""

    def list_apps(
        self,
        request: HttpRequest | None,
        provider: str | None = None,
        client_id: str | None = None,
    ) -> list[SocialApp]:
        found: Iterable[Provider] = settings.BERTH_PROVIDERS.values()
        return [_app(each) for each in found if provider in {None, each.name}]

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: str | None = None
    ) -> AtProvider:
        app = self.get_app(request, provider)
        if app.provider == OpenIDConnectProvider.id:
            return oidc.AtProvider(request, app=app)
        # Here, as what it needs is installed only where a provider speaks SAML.
        from controlplane.portal import saml

        return saml.AtProvider(request, app=app)

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


def _app(of: Provider) -> SocialApp:
    app = SocialApp(provider="saml", provider_id=of.name, name=of.label, client_id=of.name)
    if isinstance(of, OpenIDConnect):
        app.provider, app.client_id = OpenIDConnectProvider.id, of.client_id
        app.secret = of.client_secret
        app.settings = {
            "server_url": of.issuer.rstrip("/"),
            "oauth_pkce_enabled": True,
            "scope": of.scopes.split(),
        }
    return app
