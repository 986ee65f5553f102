"""JSON in and out, by orjson: strict UTF-8, no NaN, a bounded body."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import IO, Any

import orjson
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


def _default(value: object) -> object:
    if isinstance(value, Decimal):
        return str(value)  # money is never a float
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def dumps(data: Any) -> bytes:  # Any: JSON values, UUID, datetime, Decimal
    """JSON with times in UTC as `…Z` and decimals as strings."""
    return orjson.dumps(data, default=_default, option=orjson.OPT_UTC_Z)


class OrjsonRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self,
        data: Any,  # Any: JSON values
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,  # Any: DRF's context
    ) -> bytes:
        return b"" if data is None else dumps(data)


class TextRenderer(OrjsonRenderer):
    """Of a view that answers with a text of its media type; what it refuses is JSON as
    elsewhere."""

    charset = "utf-8"  # type: ignore[assignment]  # its base says that JSON has none

    def render(
        self,
        data: Any,  # Any: a text, or JSON values
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,  # Any: DRF's context
    ) -> bytes:
        return data.encode() if isinstance(data, str) else super().render(data)


class YamlRenderer(TextRenderer):
    media_type = "application/yaml"  # RFC 9512
    format = "yaml"


class CsvRenderer(TextRenderer):
    media_type = "text/csv"  # RFC 4180
    format = "csv"


class Only(BaseContentNegotiation):
    """Of a view that answers in one way, whatever is accepted (RFC 9110, 12.5.1, lets it): a
    browser, and most clients, name no YAML."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        return next(iter(parsers))

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        only = next(iter(renderers))
        return only, only.media_type


class OrjsonParser(BaseParser):
    """Raises ParseError for anything but JSON, RequestDataTooBig past the limit, before
    parsing."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],  # Any: bytes
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,  # Any: DRF's context
    ) -> Any:  # Any: JSON values
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise RequestDataTooBig
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not JSON: {error}.") from error
