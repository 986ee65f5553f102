"""Endpoints about people and places: me, tenants, projects, members, tokens."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.idempotency import HEADER
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from controlplane.kernel.errors import Invalid
from tenants import access
from tenants.models import Role, Scope, User
from tenants.selectors import idle_limits, people, preferred, run_times
from tenants.services import members, projects, tenants, tokens
from tenants.web import serializers as s
from tenants.web.named_place import place_named

type Out = dict[str, Any]  # Any: JSON values


class MeApi(ApiView):
    @operation("me_get", tag="me", summary="Who is asking", answers={200: s.MeOut})
    def get(self, request: Request) -> Response:
        self.query()
        actor = self.actor
        me = {
            "id": actor.user.id,
            "username": actor.user.get_username(),
            "memberships": people.memberships(actor=actor),
            "token": actor.token,
            "mailed_of": actor.user.mailed_of,
        }
        return Response(s.MeOut(me).data)


class TenantsApi(ApiView):
    pagination_class = Keyset

    @operation(
        "tenants_list",
        tag="tenants",
        summary="Tenants you have a role in, and those above your projects",
        answers={200: s.TenantOut(many=True)},
    )
    def get(self, request: Request) -> Response:
        self.query()
        return self.page(
            people.tenants(actor=self.actor),
            order=["id"],
            shape=many(s.TenantOut),
        )

    @operation(
        "tenants_create",
        tag="tenants",
        summary="Make a department of a tenant you own, or, owning the fleet, an organisation",
        takes=s.TenantIn,
        answers={201: s.TenantOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            body = self.body(s.TenantIn)
            parent = body["parent"]
            tenant = tenants.create(
                actor=self.actor,
                parent=access.tenant_or_404(self.actor, parent) if parent else None,
                name=body["name"],
                slug=body["slug"],
                weight=body["weight"],
                at=self.at,
            )
            return s.TenantOut(tenant).data

        return self.once(make)


class TenantApi(ApiView):
    @operation(
        "tenants_get",
        tag="tenants",
        summary="One tenant",
        answers={200: s.TenantOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        return Response(s.TenantOut(access.tenant_or_404(self.actor, id)).data)


class ProjectsApi(ApiView):
    pagination_class = Keyset

    @operation(
        "projects_list",
        tag="projects",
        summary="Projects you see",
        answers={200: s.ProjectOut(many=True)},
        query=s.ProjectsQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        asked = self.query(s.ProjectsQuery)
        return self.page(
            people.projects(actor=self.actor, tenant_id=asked.get("tenant")),
            order=["id"],
            shape=many(s.ProjectOut),
        )

    @operation(
        "projects_create",
        tag="projects",
        summary="Make a project in a tenant you own",
        takes=s.ProjectIn,
        answers={201: s.ProjectOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            body = self.body(s.ProjectIn)
            project = projects.create(
                actor=self.actor,
                tenant=access.tenant_or_404(self.actor, body["tenant"]),
                name=body["name"],
                slug=body["slug"],
                weight=body["weight"],
                at=self.at,
            )
            return s.ProjectOut(project).data

        return self.once(make)


class ProjectApi(ApiView):
    @operation(
        "projects_get",
        tag="projects",
        summary="One project and your roles in it",
        answers={200: s.ProjectDetailOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        project = people.project(actor=self.actor, id=id)
        roles = people.roles(actor=self.actor, project=project)
        idle = idle_limits.in_force(of=project).limit
        return Response(
            {
                **s.ProjectOut(project).data,
                "preferred_flavors": [each.name for each in preferred.of_project(project)],
                "roles": roles,
                "min_run_time_in_force_s": run_times.in_force(of=project).seconds,
                "idle_timeout_in_force_s": idle.timeout_s,
                "idle_warning_in_force_s": idle.warning_s,
            }
        )


class MembersApi(ApiView):
    pagination_class = Keyset

    @operation(
        "members_list",
        tag="members",
        summary="Who has a role at a project or at a tenant above it, or in the whole fleet",
        answers={200: s.MemberOut(many=True)},
        query=s.MembersQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        asked = self.query(s.MembersQuery)
        rows = (
            people.members(
                actor=self.actor, project=access.project_or_404(self.actor, asked["project"])
            )
            if "project" in asked
            else people.fleet_members(actor=self.actor)
        )
        return self.page(
            rows,
            order=["id"],
            shape=many(s.MemberOut),
        )

    @operation(
        "members_grant",
        tag="members",
        summary="Give a role at a place that you own (session only)",
        takes=s.MemberIn,
        answers={201: s.MemberOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            body = self.body(s.MemberIn)
            place = place_named(self.actor, body)
            role = Role(body["role"])
            user = members.named(actor=self.actor, username=body["user"], role=role, place=place)
            member = members.grant(actor=self.actor, user=user, role=role, place=place, at=self.at)
            return s.MemberOut(member).data

        return self.once(make)


class MemberApi(ApiView):
    @operation(
        "members_revoke",
        tag="members",
        summary="Take a role back (session only)",
        answers={204: None},
        problems=(404, 409),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        member = people.member(actor=self.actor, id=id)
        members.revoke(actor=self.actor, member=member, at=self.at)
        return Response(status=204)


class TokensApi(ApiView):
    pagination_class = Keyset

    @operation(
        "tokens_list",
        tag="tokens",
        summary="Your tokens, never their secrets",
        answers={200: s.TokenOut(many=True)},
    )
    def get(self, request: Request) -> Response:
        self.query()
        return self.page(
            people.tokens(actor=self.actor),
            order=["-id"],
            shape=many(s.TokenOut),
        )

    @operation(
        "tokens_issue",
        tag="tokens",
        summary="Make a token (session only)",
        takes=s.TokenIn,
        answers={201: s.TokenIssuedOut},
        problems=(404,),
    )
    def post(self, request: Request) -> Response:
        not_kept(request)
        return issued(self)


def not_kept(request: Request) -> None:
    """Raises Invalid for a key by which the answer, and the secret in it, would be kept."""
    if HEADER in request.headers:
        raise Invalid("A token's secret is shown once, so it can't be kept.", pointer=f"#{HEADER}")


def issued(view: ApiView, *, account: User | None = None) -> Response:
    """A new token of the one who asks, or of a service account of theirs, with its text."""
    body = view.body(s.TokenIn)
    wanted = body.get("project")
    token, text = tokens.issue(
        actor=view.actor,
        account=account,
        name=body["name"],
        scopes={Scope(scope) for scope in body["scopes"]},
        project=access.project_or_404(view.actor, wanted) if wanted else None,
        lifetime=timedelta(seconds=body["expires_in_s"]),
        at=view.at,
    )
    return Response({**s.TokenOut(token).data, "token": text}, status=201)


class TokenApi(ApiView):
    @operation(
        "tokens_revoke",
        tag="tokens",
        summary="End a token (session only)",
        answers={204: None},
        problems=(404,),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        token = people.token(actor=self.actor, id=id)
        tokens.revoke(actor=self.actor, token=token, at=self.at)
        return Response(status=204)
