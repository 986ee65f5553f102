"""What a problem's `type` leads to: its title and what to do about it."""

from typing import Any

from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.problems import KINDS, type_of
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from controlplane.kernel.errors import NotFound


class KindOut(serializers.Serializer[Any]):  # Any: plain rows
    type = serializers.CharField()
    title = serializers.CharField()
    fix = serializers.CharField()


class ProblemView(ApiView):
    """Open to all: whoever is refused may read why."""

    permission_classes = [AllowAny]

    @operation(
        "problems_get",
        tag="api",
        summary="What a kind of problem means",
        answers={200: KindOut},
        problems=(404,),
    )
    def get(self, request: Request, code: str) -> Response:
        kind = KINDS.get(code)
        if kind is None:
            raise NotFound("There is no such kind of problem.")
        return Response({"type": type_of(code), "title": kind.title, "fix": kind.fix})
