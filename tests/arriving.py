"""People who come by a provider, whatever it speaks: what groups may do, what becomes of them."""

from django.test import Client
from django.urls import reverse

from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from tenants.access import Place, actor_for
from tenants.models import Member, Project, Role, Tenant, User
from tenants.services import group_roles

HERE = "http://testserver"
"""Where Django's test client says that it is."""


def give(by: User, group: str, role: Role, place: Place, provider: str = "acme") -> None:
    group_roles.add(
        actor=actor_for(user=by), provider=provider, group=group, role=role, place=place,
        at=clock.now(),
    )  # fmt: skip


def roles(username: str) -> set[tuple[str, Tenant | Project | None]]:
    held = Member.objects.filter(user__username=username).select_related("tenant", "project")
    return {(member.role, member.project or member.tenant) for member in held}


def told(action: str) -> list[dict[str, object]]:
    """Of what providers did."""
    rows = AuditEvent.objects.filter(action=action, actor__startswith="provider:").order_by("id")
    return [{"by": row.actor, **row.after} for row in rows]


def is_in(client: Client) -> bool:
    return client.get(reverse("home")).status_code == 200


def asked(client: Client, provider: str, then: str = "") -> str:
    """Where Berth sends somebody who wants to sign in."""
    url = reverse("provider-sign-in", args=[provider])
    answer = client.get(url, {"next": then} if then else {})
    assert answer.status_code == 302, answer.content
    return answer.headers["Location"]
