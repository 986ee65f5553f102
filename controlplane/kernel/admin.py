"""The base of the back office's pages on which staff look and nobody edits: all but that of users,
whom no service makes."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

if TYPE_CHECKING:
    _Page = admin.ModelAdmin[Any]  # Any: of any model
else:
    _Page = admin.ModelAdmin  # generic for the type checker only


class ReadOnly(_Page):
    """Objects change through services only, with their checks and audit rows; here they are
    shown."""

    list_per_page = 50
    show_full_result_count = False
    actions = None

    def has_module_permission(self, request: HttpRequest) -> bool:
        return _staff(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return _staff(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def _staff(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_staff)
