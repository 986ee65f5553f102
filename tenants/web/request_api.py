"""Endpoints of requests for quota: asking, changing one's mind, and the answer."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from scheduler.selectors import guarantees
from tenants import access
from tenants.access import Actor
from tenants.models import Project, QuotaRequest
from tenants.selectors import chains
from tenants.selectors import requests as selectors
from tenants.selectors.beside import beside
from tenants.selectors.step_lines import step_lines
from tenants.services import asking, grants, previews, requests
from tenants.services.asking import Line
from tenants.services.grants import Allotment
from tenants.services.requests import Given, Seen
from tenants.web import request_serializers as s
from tenants.web.quota_api import flavor_named

type Out = dict[str, Any]  # Any: JSON values


def _allotment(body: Out, *, nominal_milli: int) -> Allotment:
    return Allotment(
        nominal_milli=nominal_milli, from_at=body["from_at"], until_at=body["until_at"]
    )


def _told(actor: Actor, at: datetime, rows: Sequence[QuotaRequest]) -> list[Out]:
    """With their steps, and what was asked for with each."""
    of = chains.chains(actor=actor, requests=rows)
    steps = step_lines(requests=rows, chains=of, at=at)
    context = {"steps": steps, "beside": beside(requests=rows)}
    return list(s.QuotaRequestOut(rows, many=True, context=context).data)


class QuotaRequestsApi(ApiView):
    pagination_class = Keyset

    @operation(
        "quota_requests_list",
        tag="quota requests",
        summary="Requests for quota, the newest first",
        answers={200: s.QuotaRequestOut(many=True)},
        query=s.QuotaRequestsQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        asked = self.query(s.QuotaRequestsQuery)
        state = asked.get("state")
        decisions = tuple("" if word == "open" else word for word in state) if state else None
        return self.page(
            selectors.requests(
                actor=self.actor,
                project_id=asked.get("project"),
                flavor=asked.get("flavor"),
                decisions=decisions,
            ),
            order=["-id"],
            shape=partial(_told, self.actor, self.at),
        )

    @operation(
        "quota_requests_open",
        tag="quota requests",
        summary="Ask for quota, of one flavor or of several at once",
        takes=s.QuotaRequestIn,
        answers={201: s.QuotaRequestOut},
        problems=(404, 429),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            body = self.body(s.QuotaRequestIn)
            project = access.project_or_404(self.actor, body["project"])
            return self._out(self._opened(project, body))

        return self.once(make)

    def _opened(self, project: Project, body: Out) -> QuotaRequest:
        """The first of them."""
        if "lines" not in body:
            return requests.open(
                actor=self.actor,
                project=project,
                flavor=flavor_named(body["flavor"]),
                allotment=_allotment(body, nominal_milli=body["nominal_milli"]),
                reason=body["reason"],
                at=self.at,
            )
        lines = [
            Line(
                flavor_named(each["flavor"], pointer=f"/lines/{number}/flavor"),
                _allotment(body, nominal_milli=each["nominal_milli"]),
            )
            for number, each in enumerate(body["lines"])
        ]
        return asking.open_all(
            actor=self.actor, project=project, lines=lines, reason=body["reason"], at=self.at
        )[0]

    def _out(self, row: QuotaRequest) -> Out:
        return _told(self.actor, self.at, [selectors.request(actor=self.actor, id=row.id)])[0]


class _One(ApiView):
    """About one request."""

    def found(self, id: UUID) -> QuotaRequest:
        return selectors.request(actor=self.actor, id=id)

    def out(self, id: UUID) -> Out:
        return _told(self.actor, self.at, [self.found(id)])[0]


class QuotaRequestApi(_One):
    @operation(
        "quota_requests_get",
        tag="quota requests",
        summary="One request for quota",
        answers={200: s.QuotaRequestOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        return Response(self.out(id))


class AmendApi(_One):
    @operation(
        "quota_requests_amend",
        tag="quota requests",
        summary="Ask for something else, before it is decided (who asked)",
        takes=s.AmendIn,
        answers={200: s.QuotaRequestOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            body = self.body(s.AmendIn)
            requests.amend(
                actor=self.actor,
                request=self.found(id),
                allotment=_allotment(body, nominal_milli=body["nominal_milli"]),
                reason=body["reason"],
                version=body["version"],
                at=self.at,
            )
            return self.out(id)

        return self.once(make, status=200)


class WithdrawApi(_One):
    @operation(
        "quota_requests_withdraw",
        tag="quota requests",
        summary="Ask no longer (who asked)",
        answers={200: s.QuotaRequestOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        self.no_body()

        def make() -> Out:
            requests.withdraw(actor=self.actor, request=self.found(id), at=self.at)
            return self.out(id)

        return self.once(make, status=200)


class GrantApi(_One):
    session_only = True

    @operation(
        "quota_requests_grant",
        tag="quota requests",
        summary="Grant a request, or agree to it for the next step (approvers, session only)",
        takes=s.GrantIn,
        answers={200: s.QuotaRequestGrantedOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            body = self.body(s.GrantIn)
            asked = self.found(id)
            milli = body.get("granted_milli")
            so_far = chains.chain(actor=self.actor, request=asked)
            given = Given(
                nominal_milli=so_far.most_milli(asked.nominal_milli) if milli is None else milli,
                until_at=body.get("until_at", so_far.until(asked.until_at)),
                take_back=body["take_back"],
            )
            requests.grant(
                actor=self.actor,
                request=asked,
                note=body["note"],
                given=given,
                seen=Seen(request=body["version"], quota=body["quota_version"], step=body["step"]),
                previewed=previews.read(body["preview"]) if "preview" in body else None,
                at=self.at,
            )
            warned = list(guarantees.warnings(flavor=asked.flavor, owner=asked.project))
            return {**self.out(id), "warnings": warned}

        return self.once(make, status=200)


class DenyApi(_One):
    session_only = True

    @operation(
        "quota_requests_deny",
        tag="quota requests",
        summary="Deny a request with a note (approvers, session only)",
        takes=s.DenyIn,
        answers={200: s.QuotaRequestOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            body = self.body(s.DenyIn)
            requests.deny(
                actor=self.actor,
                request=self.found(id),
                note=body["note"],
                version=body["version"],
                step=body["step"],
                at=self.at,
            )
            return self.out(id)

        return self.once(make, status=200)


class EndGrantApi(_One):
    session_only = True

    @operation(
        "quota_requests_end",
        tag="quota requests",
        summary="End what was granted for a time, before that (approvers, session only)",
        answers={200: s.QuotaRequestOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        self.no_body()

        def make() -> Out:
            grant = selectors.grant(actor=self.actor, request_id=self.found(id).id)
            grants.end(actor=self.actor, grant=grant, at=self.at)
            return self.out(id)

        return self.once(make, status=200)
