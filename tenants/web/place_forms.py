"""The forms of tenants, projects and who has a role there. The services check what they say."""

from collections.abc import Sequence
from uuid import UUID

from django import forms

from controlplane.kernel.forms import Posted, StrictForm
from tenants.models import Role, Tenant
from tenants.naming import MAX_NAME

_SLUG = "a-z, 0-9 and -, in names of namespaces. It stays when the name changes."


class NameForm(StrictForm):
    name = forms.CharField(max_length=MAX_NAME)


class ProjectForm(NameForm):
    slug = forms.CharField(max_length=40, help_text=_SLUG)


class _PlaceForm(StrictForm):
    """`place` offers tenants, and none of them for the top where that may be said; it shows where
    it is `now`."""

    place = ""
    top = ""

    def __init__(
        self,
        data: Posted = None,
        files: Posted = None,
        *,
        offered: Sequence[Tenant],
        may_top: bool = False,
        now: UUID | None = None,
    ) -> None:
        super().__init__(data, files, initial={self.place: str(now) if now else ""})
        self.may_choose = bool(offered) or may_top
        choices = [(str(tenant.id), tenant.name) for tenant in offered]
        self.choose(self.place, [*([("", self.top)] if may_top else []), *choices])
        self.fields[self.place].required = not may_top

    @property
    def chosen(self) -> UUID | None:
        value: UUID | None = self.cleaned_data[self.place]
        return value


class TenantForm(_PlaceForm):
    place, top = "parent", "None: an organisation"

    parent = forms.TypedChoiceField(coerce=UUID, empty_value=None, label="Department of")
    name = forms.CharField(max_length=MAX_NAME)
    slug = forms.CharField(max_length=40, help_text=_SLUG)


class ParentForm(_PlaceForm):
    place, top = "parent", "None: an organisation"

    parent = forms.TypedChoiceField(coerce=UUID, empty_value=None, label="Department of")


class TenantOfForm(_PlaceForm):
    place = "tenant"

    tenant = forms.TypedChoiceField(coerce=UUID, empty_value=None, label="Project of")


class MemberForm(StrictForm):
    user = forms.CharField(max_length=150, label="User name")
    role = forms.ChoiceField(
        choices=[(role.value, role.label) for role in Role], initial=Role.VIEWER.value
    )
