"""Keyset pages: a cursor names the last row seen, so that pages stay right while rows come and
go."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import orjson
from django.core.exceptions import ValidationError
from django.db.models import Field, Model, Q, QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from controlplane.kernel.errors import Invalid

LIMIT, MAX_LIMIT = 50, 200
MAX_CURSOR = 500


class Keyset(BasePagination):
    """`?cursor=&limit=`; `Link: <…>; rel="next"`; never a total. The order ends in a unique
    field."""

    def __init__(self, *order: str) -> None:
        self.order = order or ("id",)
        self.next_cursor: str | None = None
        self.started = False
        """Whether this page continues an earlier one."""

    def paginate_queryset[M: Model](  # type: ignore[override]  # lists are not paged here
        self, queryset: QuerySet[M], request: Request, view: APIView | None = None
    ) -> list[M]:
        """One page of rows. Raises Invalid for a limit or cursor that is none of ours."""
        limit = _limit(request.query_params.get("limit"))
        cursor = request.query_params.get("cursor")
        if cursor is not None:
            self.started = True
            queryset = queryset.filter(after(self.order, self._values(queryset, cursor)))
        rows = list(queryset.order_by(*self.order)[: limit + 1])
        if len(rows) > limit:
            rows.pop()
            self.next_cursor = _encode(
                [getattr(rows[-1], field.lstrip("-")) for field in self.order]
            )
        return rows

    def get_paginated_response(self, data: Any) -> Response:  # Any: the rows, shaped
        raise NotImplementedError("ApiView.page answers")

    def _values[M: Model](
        self, queryset: QuerySet[M], cursor: str
    ) -> list[Any]:  # Any: as the fields' types
        fault = Invalid(
            "The cursor is none that a list gave.", pointer="?cursor", code="bad-cursor"
        )
        if len(cursor) > MAX_CURSOR:
            raise fault
        try:
            padded = cursor + "=" * (-len(cursor) % 4)
            values = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
            if not isinstance(values, list) or len(values) != len(self.order) or None in values:
                raise fault
            fields = [_field(queryset, name) for name in self.order]
            read = [field.to_python(value) for field, value in zip(fields, values, strict=True)]
        except (ValueError, TypeError, binascii.Error, ValidationError) as error:
            raise fault from error
        if _encode(read) != cursor:  # a value of another type that a field is lenient about
            raise fault
        return read

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
        return {
            "type": "object",
            "required": ["items", "next", "as_of"],
            "properties": {
                "items": schema,
                "next": {
                    "type": ["string", "null"],
                    "description": "Cursor of the next page, null on the last.",
                },
                "as_of": {"type": "string", "format": "date-time"},
            },
        }


def next_link(request: Request, cursor: str) -> str:
    """The path and query of the next page."""
    return replace_query_param(request.get_full_path(), "cursor", cursor)


def after(order: Sequence[str], values: Sequence[Any]) -> Q:  # Any: as the fields' types
    """The rows past `values` in `order`: for each field, equal so far and then beyond."""
    beyond, equal = Q(), Q()
    for field, value in zip(order, values, strict=True):
        name = field.lstrip("-")
        step = "lt" if field.startswith("-") else "gt"
        beyond |= equal & Q((f"{name}__{step}", value))
        equal &= Q((name, value))
    return beyond


def _limit(text: str | None) -> int:
    if text is None:
        return LIMIT
    if text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= MAX_LIMIT:
        return int(text)
    raise Invalid(
        f"limit has to be a whole number from 1 to {MAX_LIMIT}.", pointer="?limit", code="invalid"
    )


def _field[M: Model](queryset: QuerySet[M], name: str) -> "Field[Any, Any]":  # Any: of any type
    """Of a column, or of what the query has beside them."""
    name = name.lstrip("-")
    beside = queryset.query.annotations.get(name)
    field = beside.output_field if beside else queryset.model._meta.get_field(name)
    if not isinstance(field, Field):
        raise TypeError(f"{name} is no column of {queryset.model.__name__}")
    return field


def _encode(values: list[object]) -> str:
    content = orjson.dumps(values)  # ids and moments as text
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
