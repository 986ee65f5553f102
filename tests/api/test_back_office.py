"""The back office: what is shown there and what not, and the accounts that are made there. Its
routes are all asked in test_back_office_routes.py."""

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from controlplane.audit.models import AuditEvent
from controlplane.kernel.admin import ReadOnly
from tenants.access import actor_for
from tenants.models import (
    ApprovalRule,
    Channel,
    Delegation,
    Delivery,
    Notice,
    RequestStep,
    SubmitPolicy,
    User,
)
from tenants.services import channels
from tests import factories
from tests.conftest import Cast
from tests.tenants.test_webhooks import AT, CANARY, make


@pytest.fixture
def staff(db: None) -> Client:
    client = Client()
    client.force_login(factories.user("sue", is_staff=True))
    return client


def test_only_users_can_be_edited() -> None:
    edited = [
        model for model, page in admin.site._registry.items() if not isinstance(page, ReadOnly)
    ]
    assert edited == [User]


def test_all_is_there_by_which_people_decide_and_are_told() -> None:
    """What nothing else shows, or only to who it is for."""
    told = {Channel, Delivery, Notice}
    decided = {ApprovalRule, Delegation, RequestStep, SubmitPolicy}
    assert told | decided <= admin.site._registry.keys()


def test_no_secret_is_shown(staff: Client, cast: Cast) -> None:
    token = factories.token(cast.ben)
    html = staff.get(reverse("admin:tenants_token_change", args=[token.id])).content.decode()
    assert token.name in html
    assert token.digest not in html


def test_no_address_of_a_channel_is_shown(staff: Client, cast: Cast) -> None:
    """Who knows one may write there. What of it is no secret is."""
    channel, secret = make(cast.ada, cast.vision, f"https://hooks.example/{CANARY}")
    channels.try_out(actor=actor_for(user=cast.ada), channel=channel, at=AT)
    Delivery.objects.update(error="It answered 500.")
    rows = (channel, Delivery.objects.get(), Notice.objects.get())
    names = [f"admin:tenants_{row._meta.model_name}" for row in rows]
    pages = [staff.get(reverse(f"{name}_changelist")) for name in names]
    pages += [
        staff.get(reverse(f"{name}_change", args=[row.pk]))
        for name, row in zip(names, rows, strict=True)
    ]
    html = "".join(page.content.decode() for page in pages)
    assert {page.status_code for page in pages} == {200}
    assert "hooks.example" in html
    assert "It answered 500." in html
    sealed = bytes(channel.sealed)
    for word in (CANARY, secret, repr(sealed)[2:12], sealed.hex(), "Sealed"):
        assert word not in html


def test_a_superuser_makes_a_user_who_may_do_nothing(db: None) -> None:
    client = Client()
    client.force_login(factories.user("root", is_staff=True, is_superuser=True))
    form = {
        "username": "new", "usable_password": "true", "password1": "long-enough-2026",
        "password2": "long-enough-2026",
    }  # fmt: skip
    answer = client.post(reverse("admin:tenants_user_add"), form)
    assert answer.status_code == 302
    made = User.objects.get(username="new")
    assert not made.is_staff
    assert client.get(reverse("admin:tenants_user_change", args=[made.id])).status_code == 200


def test_what_is_done_to_an_account_is_audited(db: None) -> None:
    root = factories.user("root", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(root)

    def told() -> list[tuple[str, dict[str, object], dict[str, object]]]:
        rows = AuditEvent.objects.filter(actor=f"user:{root.id}", target_type="user")
        return list(rows.order_by("id").values_list("action", "before", "after"))

    password = {"password1": "long-enough-2026", "password2": "long-enough-2026"}
    client.post(
        reverse("admin:tenants_user_add"),
        {"username": "new", "usable_password": "true", **password},
    )
    fresh = {
        "username": "new", "email": "", "is_active": True, "is_staff": False,
        "is_superuser": False,
    }  # fmt: skip
    assert told() == [("user.create", {}, fresh)]
    made = User.objects.get(username="new")
    change = reverse("admin:tenants_user_change", args=[made.id])
    token = factories.token(made)
    client.post(change, {"username": "new", "is_staff": "on", "first_name": "Nova"})
    token.refresh_from_db()
    assert (token.revoked_at is not None, token.revoked_by) == (True, root.username)
    assert told()[1:] == [("user.change", fresh, fresh | {"is_active": False, "is_staff": True})]
    client.post(change, {"username": "new", "is_staff": "on", "first_name": "Nia"})
    assert len(told()) == 2
    reset = reverse("admin:auth_user_password_change", args=[made.id])
    client.post(reset, {"usable_password": "true", **password, "set-password": "1"})
    assert told()[2:] == [("user.password", {}, {})]
    client.post(reset, {"usable_password": "true", "password1": "one", "password2": "other"})
    assert len(told()) == 3
    own = reverse("admin:password_change")
    new = {"new_password1": "longer-still-2026", "new_password2": "longer-still-2026"}
    client.post(own, {"old_password": "wrong", **new})
    assert len(told()) == 3
    client.post(own, {"old_password": "root", **new})
    assert told()[3:] == [("user.password", {}, {})]
