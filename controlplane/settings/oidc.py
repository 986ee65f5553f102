"""Providers that speak OpenID Connect, as the environment has them."""

from dataclasses import dataclass, field

from django.core.exceptions import ImproperlyConfigured

from controlplane.settings.providers import Provider, Told, told, web_address

_NEEDED = {"issuer", "client_id", "client_secret"}
_KNOWN = {*_NEEDED, "label", "groups_claim", "scopes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIDConnect(Provider):
    """An OpenID Connect provider, and what Berth is to it.

    `groups_claim` names the claim that tells a person's groups; "" is a provider that tells none.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    groups_claim: str = ""
    scopes: str = "openid profile email"

    @property
    def tells_groups(self) -> bool:
        return bool(self.groups_claim)


def providers(setting: str) -> dict[str, Provider]:
    """By name, as `{"acme": {"issuer": …, "client_id": …, "client_secret": …}}` in JSON tells."""
    return {each.name: _provider(each) for each in told(setting, needed=_NEEDED, known=_KNOWN)}


def _provider(of: Told) -> OpenIDConnect:
    if "openid" not in of.values.get("scopes", "openid").split():
        raise ImproperlyConfigured(f"{of.where}: scopes has to name openid.")
    url = web_address(of.values["issuer"])
    if url is None or url.query or url.fragment:
        raise ImproperlyConfigured(
            f"{of.where}: issuer has to be a URL with https, without a query: what the provider"
            " calls itself."
        )
    return OpenIDConnect(name=of.name, **of.values)
