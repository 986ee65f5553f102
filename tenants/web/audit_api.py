"""Endpoints of the audit: reading it, and taking it away as a file."""

import csv
from collections.abc import Sequence
from io import StringIO
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Id, Moment, StrictSerializer, Text, Words
from controlplane.api.pagination import Keyset
from controlplane.api.render import CsvRenderer, Only, OrjsonRenderer, dumps
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from controlplane.audit.actions import ACTIONS
from controlplane.audit.models import AuditEvent
from tenants.selectors import audit as selectors
from tenants.selectors.audit import MOST_EXPORTED, Asked

type Out = dict[str, Any]  # Any: JSON values

COLUMNS = (
    "id", "at", "actor", "actor_name", "action", "target_type", "target_id", "tenant_id",
    "project_id", "before", "after",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that a spreadsheet may take for a formula."""


class AuditEventOut(serializers.Serializer[Any]):  # Any: rows
    """What somebody, or a part of Berth, did. `before` and `after` hold what of it changed."""

    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    actor = serializers.CharField(
        help_text="user:<id>, token:<id>, provider:<name> or system:<part>."
    )
    actor_name = serializers.CharField()
    action = serializers.CharField()
    target_type = serializers.CharField()
    target_id = serializers.UUIDField()
    tenant = serializers.UUIDField(source="tenant_id", allow_null=True)
    project = serializers.UUIDField(source="project_id", allow_null=True)
    before = serializers.DictField()
    after = serializers.DictField()


class AuditFileOut(serializers.Serializer[Any]):  # Any: description only
    items = AuditEventOut(many=True)


class AuditQuery(StrictSerializer):
    project = Id(required=False)
    tenant = Id(required=False, help_text="With all below it.")
    who = Text(required=False, max_length=150, help_text="A name, or an actor as they are told.")
    by = serializers.ChoiceField(
        choices=["people"], required=False, help_text="Leaves out what Berth did by itself."
    )
    action = Words(choices=sorted(ACTIONS), required=False)
    target = Id(required=False)
    since = Moment(required=False)
    until = Moment(required=False, help_text="The first moment that is not wanted any more.")


class ExportQuery(AuditQuery):
    before = Id(required=False, help_text="Only what was written before this event.")


def asked(query: Out) -> Asked:
    return Asked(
        project=query.get("project"),
        tenant=query.get("tenant"),
        who=query.get("who", ""),
        people="by" in query,
        actions=query.get("action", ()),
        target=query.get("target"),
        since=query.get("since"),
        until=query.get("until"),
    )


class AuditEventsApi(ApiView):
    pagination_class = Keyset

    @operation(
        "audit_events_list",
        tag="audit",
        summary="Who did what, the newest first (owners, approvers, operators)",
        answers={200: AuditEventOut(many=True)},
        query=AuditQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        query = self.query(AuditQuery)
        return self.page(
            selectors.events(actor=self.actor, asked=asked(query)),
            order=["-id"],
            shape=many(AuditEventOut),
        )


class _Export(ApiView):
    content_negotiation_class = Only

    def rows(self) -> list[AuditEvent]:
        query = self.query(ExportQuery)
        found = selectors.events(actor=self.actor, asked=asked(query))
        if "before" in query:
            found = found.filter(id__lt=query["before"])
        return list(found.order_by("-id")[:MOST_EXPORTED])

    def file(self, content: Any, name: str) -> Response:  # Any: as its renderer takes it
        return Response(content, headers={"Content-Disposition": f'attachment; filename="{name}"'})


class AuditCsvApi(_Export):
    renderer_classes = [CsvRenderer]

    @operation(
        "audit_events_csv",
        tag="audit",
        summary=f"The newest {MOST_EXPORTED:,} events as CSV; `before` the last for those before",
        answers={(200, CsvRenderer.media_type): str},
        query=ExportQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        return self.file(as_csv(self.rows()), "audit.csv")


class AuditJsonApi(_Export):
    renderer_classes = [OrjsonRenderer]

    @operation(
        "audit_events_json",
        tag="audit",
        summary=f"The newest {MOST_EXPORTED:,} events as JSON; `before` the last for those before",
        answers={200: AuditFileOut},
        query=ExportQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        return self.file({"items": AuditEventOut(self.rows(), many=True).data}, "audit.json")


def as_csv(rows: Sequence[AuditEvent]) -> str:
    """One line an event, under the names of COLUMNS; what changed is JSON."""
    found = StringIO()
    writer = csv.writer(found)
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow(
            _cell(value.isoformat() if name == "at" else value)
            for name, value in ((name, getattr(row, name)) for name in COLUMNS)
        )
    return found.getvalue()


def _cell(value: Any) -> str:  # Any: of a column
    text = (
        dumps(value).decode() if isinstance(value, dict) else str("" if value is None else value)
    )
    return f"'{text}" if text.startswith(_FORMULA) else text
