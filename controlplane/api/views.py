"""What every endpoint does alike: the actor, strict input, pages, idempotent POSTs."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db.models import Model, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer, ValidationError
from rest_framework.views import APIView

from controlplane.api import idempotency
from controlplane.api.auth import actor_of
from controlplane.api.fields import pointers_to_query
from controlplane.api.pagination import Keyset, next_link
from controlplane.kernel import clock
from controlplane.kernel.errors import Invalid, NotAllowed, Problem
from tenants.access import Actor

_PAGING = frozenset({"cursor", "limit"})


def many[M: Model](
    serializer: type[Serializer[Any]],  # Any: rows
) -> Callable[[list[M]], Sequence[Mapping[str, Any]]]:  # Any: JSON values
    """The shape of a list whose rows `serializer` describes."""

    def shape(rows: list[M]) -> Sequence[Mapping[str, Any]]:  # Any: JSON values
        shaped: Sequence[Mapping[str, Any]] = list(serializer(rows, many=True).data)
        return shaped

    return shape


class ApiView(APIView):
    # One resource. Methods read `self.actor` and `self.at`, call one service or selector, answer.
    # (A comment: a docstring would stand at every operation of the API's description.)

    pagination_class: type[Keyset] | None = None
    """Set on views whose GET is a list, for the API's description."""
    session_only = False
    """True where a token may never act, whatever its scopes."""
    of_gates = False
    """True where a token for gates alone may act."""

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Refuse a body over the limit before anything else looks at it, even who sent it."""
        if request.method not in {"GET", "HEAD", "OPTIONS"}:
            body = request._request.body
            if len(body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
                raise RequestDataTooBig
        super().initial(request, *args, **kwargs)
        if self.session_only and request.auth is not None:
            raise NotAllowed("A token can't do this; sign in on the portal.")
        if not self.of_gates and request.auth is not None and self.actor.for_gates_only:
            raise NotAllowed("This token sees and decides gates, and nothing else.")

    @cached_property
    def at(self) -> datetime:
        """The moment of this request."""
        return clock.now()

    @property
    def actor(self) -> Actor:
        return actor_of(self.request)

    def body(
        self, serializer: type[BaseSerializer[Any]]
    ) -> dict[str, Any]:  # Any: validated input
        """The body as `serializer` understands it. Raises DRF's ValidationError."""
        bound = serializer(data=self.request.data)
        bound.is_valid(raise_exception=True)
        value: dict[str, Any] = bound.validated_data  # Any: as the serializer's fields
        return value

    def no_body(self) -> None:
        """Raises Invalid when the request has one (an empty object counts as none)."""
        if self.request._request.body not in {b"", b"{}"}:
            raise Invalid("This takes no body.", code="unknown-field")

    def query(
        self, serializer: type[Serializer[Any]] | None = None
    ) -> dict[str, Any]:  # Any: input
        """The query parameters; every one that `serializer` does not name is refused."""
        given = self.request.query_params
        fields = serializer().fields if serializer else {}
        known = set(fields) | (_PAGING if self.pagination_class else frozenset())
        found = [
            Problem(
                pointer=f"?{name}", code="unknown-parameter", message="There is no such filter."
            )
            for name in given
            if name not in known
        ]
        found += [
            Problem(pointer=f"?{name}", code="repeated-parameter", message="Give it once.")
            for name, values in given.lists()
            if len(values) > 1
        ]
        values: dict[str, Any] = {}  # Any: as the serializer's fields
        if serializer is not None and not found:
            bound = serializer(data={name: given[name] for name in fields if name in given})
            try:
                bound.is_valid(raise_exception=True)
                values = bound.validated_data
            except ValidationError as error:
                found = [
                    Problem(pointer=f"?{name}", code=code, message=message)
                    for name, code, message in pointers_to_query(error.get_full_details())
                ]
        if found:
            raise Invalid(f"{found[0].pointer}: {found[0].message}", problems=tuple(found))
        return values

    def page[M: Model](
        self,
        rows: QuerySet[M],
        *,
        order: Sequence[str],
        shape: Callable[[list[M]], Sequence[Mapping[str, Any]]],  # Any: JSON values
    ) -> Response:
        """One page of `rows`, each shaped for the answer."""
        keyset = Keyset(*order)
        items = shape(keyset.paginate_queryset(rows, self.request, self))
        return self.items(items, next_cursor=keyset.next_cursor)

    def items(
        self, items: Sequence[Mapping[str, Any]], *, next_cursor: str | None = None
    ) -> Response:  # Any: JSON values
        """The envelope of every list."""
        headers = {}
        if next_cursor:
            headers["Link"] = f'<{next_link(self.request, next_cursor)}>; rel="next"'
        return Response({"items": items, "next": next_cursor, "as_of": self.at}, headers=headers)

    def once(self, make: Callable[[], Any], *, status: int = 201) -> Response:  # Any: JSON values
        """Answer a POST, at most once for each Idempotency-Key."""
        return self.once_prepared(lambda: make, status=status)

    def once_prepared(
        self,
        prepare: Callable[[], Callable[[], Any]],  # Any: JSON values
        *,
        status: int = 201,
    ) -> Response:
        """The same for what takes long: `prepare` runs before any transaction, see `once`."""
        return idempotency.once(
            self.request, principal=self.actor.label, at=self.at, status=status, prepare=prepare
        )
