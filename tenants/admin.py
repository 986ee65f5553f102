"""The back office of people, quota and money. Only users, whom no service makes, are edited."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse

from controlplane.audit.services import Entry
from controlplane.kernel import clock
from controlplane.kernel.admin import ReadOnly
from tenants import access, models
from tenants.services import sessions, tokens, trail

if TYPE_CHECKING:
    _UserPage = UserAdmin[models.User]
else:
    _UserPage = UserAdmin  # generic for the type checker only

admin.site.unregister(Group)  # roles are Member rows: groups and their permissions mean nothing
# What allauth keeps is for it alone: providers come from the environment, and secrets of second
# factors are nobody's to read.
for model in (Authenticator, EmailAddress, SocialApp, SocialAccount, SocialToken):
    admin.site.unregister(model)


_AUDITED = ("username", "email", "is_active", "is_staff", "is_superuser")
"""Of an account."""


@admin.register(models.User)
class UserPage(_UserPage):
    """For superusers: who can sign in. What they may do is not decided here."""

    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Back office", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Times", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")
    list_display = ("username", "email", "is_active", "is_staff")
    list_filter = ("is_active", "is_staff")
    filter_horizontal = ()

    def get_queryset(self, request: HttpRequest) -> "QuerySet[models.User]":
        """Service accounts belong to who owns their place."""
        people = super().get_queryset(request)
        return people.filter(service_tenant=None, service_project=None)

    def has_delete_permission(self, *args: Any, **kwargs: Any) -> bool:  # Any: as Django calls it
        return False  # what they submitted and decided names them: end their access by is_active

    def save_model(
        self,
        request: HttpRequest,
        obj: models.User,
        form: "ModelForm[models.User]",
        change: bool,
    ) -> None:
        old = models.User.objects.filter(pk=obj.pk).values(*_AUDITED).first() if change else None
        if obj.is_active:
            obj.left_at = None
        super().save_model(request, obj, form, change)
        before, after = old or {}, {name: getattr(obj, name) for name in _AUDITED}
        if before != after:
            _record(request, "user.change" if old else "user.create", obj, before, after)
        if not obj.is_active:
            actor = _actor(request)
            at = clock.now()
            sessions.end_of(user=obj, by=actor.label, name=actor.name, at=at)
            tokens.revoke_of(user=obj, by=actor.label, name=actor.name, at=at)

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        with password_told(request, self.get_object(request, id)):
            return super().user_change_password(request, id, form_url)


@contextmanager
def password_told(request: HttpRequest, user: models.User | None) -> Iterator[None]:
    """Audits it where the password of the user has changed."""
    with transaction.atomic():
        yield
        if user is not None:
            old = user.password
            user.refresh_from_db()
            if user.password != old:
                _record(request, "user.password", user, {}, {})


def _record(
    request: HttpRequest,
    action: str,
    of: models.User,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> None:
    entry = Entry(action, "user", of.pk, before=before, after=after)
    trail.record(entry, actor=_actor(request), at=clock.now())


def _actor(request: HttpRequest) -> access.Actor:
    assert isinstance(request.user, models.User)  # noqa: S101  # nobody else gets in
    return access.actor_for(user=request.user)


@admin.register(models.Tenant)
class TenantPage(ReadOnly):
    list_display = ("name", "slug", "parent", "weight")
    list_select_related = ("parent",)
    search_fields = ("name", "slug")


@admin.register(models.Project)
class ProjectPage(ReadOnly):
    list_display = ("name", "tenant", "namespace", "weight", "queue_state")
    list_filter = ("queue_state",)
    list_select_related = ("tenant",)
    search_fields = ("name", "slug", "namespace")


@admin.register(models.StandingGate)
class StandingGatePage(ReadOnly):
    list_display = ("name", "kind", "project", "owner", "within_s")
    list_select_related = ("project", "owner")
    list_filter = ("kind",)


@admin.register(models.PreferredFlavor)
class PreferredFlavorPage(ReadOnly):
    list_display = ("project", "position", "flavor")
    list_select_related = ("project", "flavor")


@admin.register(models.Member)
class MemberPage(ReadOnly):
    list_display = ("user", "role", "tenant", "project", "granted_by", "granted_at")
    list_select_related = ("user", "tenant", "project", "granted_by")
    list_filter = ("role",)
    search_fields = ("user__username",)


@admin.register(models.GroupRole)
class GroupRolePage(ReadOnly):
    list_display = ("provider", "group", "role", "tenant", "project", "made_by")
    list_select_related = ("tenant", "project", "made_by")
    list_filter = ("provider", "role")


@admin.register(models.Token)
class TokenPage(ReadOnly):
    list_display = ("name", "user", "scopes", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    exclude = ("digest",)


@admin.register(models.UserSession)
class UserSessionPage(ReadOnly):
    list_display = ("user", "began_at", "seen_at", "address")
    list_select_related = ("user",)
    exclude = ("session",)


@admin.register(models.Quota)
class QuotaPage(ReadOnly):
    list_display = ("project", "flavor", "nominal_milli", "used_milli", "version")
    list_select_related = ("project", "flavor")


@admin.register(models.TenantQuota)
class TenantQuotaPage(ReadOnly):
    list_display = ("tenant", "flavor", "nominal_milli", "version")
    list_select_related = ("tenant", "flavor")


@admin.register(models.PastUse)
class PastUsePage(ReadOnly):
    list_display = ("day", "project", "flavor", "milli_s")
    list_select_related = ("project", "flavor")


@admin.register(models.Budget)
class BudgetPage(ReadOnly):
    list_display = ("project", "tenant", "period", "limit_h", "mode", "starts_on", "ends_on")
    list_select_related = ("project", "tenant")


@admin.register(models.Reservation)
class ReservationPage(ReadOnly):
    list_display = (
        "project", "tenant", "flavor", "amount_milli", "starts_at", "ends_at", "cancelled_at",
    )  # fmt: skip
    list_select_related = ("project", "tenant", "flavor")


@admin.register(models.QuotaRequest)
class QuotaRequestPage(ReadOnly):
    list_display = ("project", "flavor", "nominal_milli", "requested_by", "decision", "decided_by")
    list_select_related = ("project", "flavor", "requested_by", "decided_by")
    list_filter = ("decision",)


@admin.register(models.Grant)
class GrantPage(ReadOnly):
    list_display = ("request", "extra_milli", "from_at", "until_at", "begun_at", "ended_at")
    list_select_related = ("request",)


@admin.register(models.ApprovalRule)
class ApprovalRulePage(ReadOnly):
    list_display = ("tenant", "level", "from_milli", "after_days")
    list_select_related = ("tenant",)


@admin.register(models.RequestStep)
class RequestStepPage(ReadOnly):
    list_display = ("request", "version", "position", "outcome", "decided_by", "on_behalf_of")
    list_select_related = ("request", "decided_by", "on_behalf_of")
    list_filter = ("outcome",)


@admin.register(models.Delegation)
class DelegationPage(ReadOnly):
    list_display = ("approver", "delegate", "from_at", "until_at", "withdrawn_at")
    list_select_related = ("approver", "delegate")


@admin.register(models.SubmitPolicy)
class SubmitPolicyPage(ReadOnly):
    list_display = ("project", "tenant", "is_from_above", "version")
    list_select_related = ("project", "tenant")


@admin.register(models.Channel)
class ChannelPage(ReadOnly):
    list_display = ("name", "kind", "host", "tenant", "project", "tried_at", "failing_since")
    list_select_related = ("tenant", "project")
    exclude = ("sealed",)


@admin.register(models.Notice)
class NoticePage(ReadOnly):
    list_display = ("event", "project", "at", "cause")
    list_select_related = ("project",)
    list_filter = ("event",)


@admin.register(models.Delivery)
class DeliveryPage(ReadOnly):
    list_display = (
        "notice",
        "user",
        "channel",
        "tries",
        "due_at",
        "sent_at",
        "failed_at",
        "error",
    )
    list_select_related = ("notice", "user", "channel")


@admin.register(models.Rate)
class RatePage(ReadOnly):
    list_display = ("flavor", "cluster", "price_per_hour", "currency", "during")
    list_select_related = ("flavor", "cluster")


@admin.register(models.UsageInterval)
class UsagePage(ReadOnly):
    list_display = ("project", "flavor", "cluster", "amount_milli", "during")
    list_select_related = ("project", "flavor", "cluster")


@admin.register(models.Charge)
class ChargePage(ReadOnly):
    list_display = ("project", "flavor", "amount", "currency", "ended_at", "corrects")
    list_select_related = ("project", "flavor", "corrects")
