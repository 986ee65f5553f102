"""The audit trail in the back office, to look at."""

from django.contrib import admin

from controlplane.audit.models import AuditEvent
from controlplane.kernel.admin import ReadOnly


@admin.register(AuditEvent)
class AuditPage(ReadOnly):
    list_display = ("at", "actor_name", "action", "target_type", "target_id")
    search_fields = ("actor", "actor_name", "action", "target_id")
