"""How endpoints describe themselves: one decorator, the shared problem schema, the docs page."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import serializers

from controlplane.api.errors import MEDIA_TYPE
from controlplane.api.idempotency import HEADER
from controlplane.api.pagination import LIMIT, MAX_CURSOR, MAX_LIMIT

type Out = Any  # a serializer class or instance, as drf-spectacular takes them


class FaultOut(serializers.Serializer[Any]):  # Any: description only
    pointer = serializers.CharField(
        help_text="JSON pointer into the body; ?name for a query parameter, #name for a header."
    )
    code = serializers.CharField()
    message = serializers.CharField()


class ProblemOut(serializers.Serializer[Any]):  # Any: description only
    """RFC 9457."""

    type = serializers.CharField(help_text="Path of a document that says what to do.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    instance = serializers.CharField()
    code = serializers.CharField(help_text="Stable; one of the documented kinds.")
    errors = FaultOut(many=True)  # type: ignore[assignment]  # DRF takes declared fields off the class


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # untyped base
    target_class = "controlplane.api.auth.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "berth_<id>_<secret>"}


_WHY = {
    400: "The input is not acceptable; `errors` says where and why.",
    401: "Nobody is signed in, or the token is not valid.",
    403: "The role, or the token's scopes, do not permit it.",
    404: "No such object, or none that the caller may see.",
    409: "The object is not in the state that this needs.",
    413: "The body has more than 1 MiB.",
    422: "The Idempotency-Key came with another body before.",
    503: "A part of Berth is not set up for this, or does not answer.",
    429: "Too many of these were asked for; Retry-After says how long to wait.",
}
_KEY = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    description="1 to 200 printable ASCII characters; the answer is kept for 24 hours.",
)
_PAGE = [
    OpenApiParameter(
        "cursor",
        {"type": "string", "maxLength": MAX_CURSOR},
        description="`next` of the page before.",
    ),
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": LIMIT},
        description="How many rows at most.",
    ),
]


def operation(
    operation_id: str,
    *,
    tag: str,
    summary: str,
    answers: Mapping[int | tuple[int, str], Out],
    takes: Out = None,
    query: Out = None,
    problems: Sequence[int] = (),
    keyed: bool = False,
) -> Callable[[Any], Any]:  # Any: a view method
    """Describe one operation; an answer that is no JSON says its media type. 400, 401 and 403
    are always possible; `problems` adds others."""
    statuses = {400, 401, 403, *problems}
    if takes is not None:
        statuses.add(413)
    if keyed:
        statuses |= {409, 422}
    refusals = {
        (status, MEDIA_TYPE): OpenApiResponse(ProblemOut, _WHY[status])
        for status in sorted(statuses)
    }
    parameters = [*([query] if query is not None else []), *([_KEY] if keyed else [])]
    if any(isinstance(answer, serializers.ListSerializer) for answer in answers.values()):
        parameters += _PAGE
    decorator: Callable[[Any], Any] = extend_schema(
        operation_id=operation_id,
        tags=[tag],
        summary=summary,
        request=takes,
        responses={**answers, **refusals},
        parameters=parameters,
    )
    return decorator


class SchemaView(SpectacularAPIView):
    """OpenAPI 3.1 of everything under /api/v1/."""


class DocsView(SpectacularSwaggerSplitView):
    """The browsable page. Its template has no inline style, so the policy stays as strict as
    elsewhere."""

    template_name = "api/docs.html"
    url_name = "api:schema"
