"""Open requests with their chains in one query, for the badge that every page shows."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db.models import Value
from django.db.models.functions import JSONObject

from clusters.models import Flavor
from tenants import access, ancestry
from tenants.access import Action, Actor
from tenants.approval import Level, Rule
from tenants.models import ApprovalRule, Project, QuotaRequest, RequestStep, Tenant, User
from tenants.selectors import chains
from tenants.selectors.chains import Chain

type Fields = dict[str, Any]  # Any: JSON values

_REQUEST = JSONObject(
    id="id", version="version", nominal_milli="nominal_milli",
    project="project_id", tenant="project__tenant_id",
    kind="flavor__kind", model="flavor__model", profile="flavor__profile",
    asker="requested_by_id", name="requested_by__username",
)  # fmt: skip
_STEP = JSONObject(
    request="request_id", version="version", position="position", level="level",
    tenant="tenant_id", outcome="outcome", granted_milli="granted_milli",
    decided_by="decided_by_id", on_behalf_of="on_behalf_of_id",
)  # fmt: skip
_RULE = JSONObject(
    tenant="tenant_id", level="level", from_milli="from_milli", after_days="after_days"
)
_TENANT = JSONObject(id="id", parent="parent_id")


def open_chains(
    *, actor: Actor, action: Action, most: int
) -> Iterator[tuple[QuotaRequest, Chain]]:
    """Of the oldest so many open requests where the actor may do that, what tells who decides
    them: their other fields are not read, nor the moments of their steps. One query, and the
    actor's own of the tree."""
    waiting = QuotaRequest.objects.filter(decision="").order_by("id")
    seen = access.for_actor(waiting, actor=actor, action=action)
    said = RequestStep.objects.filter(request__decision="")
    rows = seen[:most].values_list(Value("request"), _REQUEST)
    found: dict[str, list[Fields]] = {"request": [], "step": [], "rule": [], "tenant": []}
    for kind, fields in rows.union(
        said.values_list(Value("step"), _STEP),
        ApprovalRule.objects.values_list(Value("rule"), _RULE),
        Tenant.objects.values_list(Value("tenant"), _TENANT),
        all=True,
    ):
        found[kind].append(fields)
    parents = {UUID(each["id"]): _id(each["parent"]) for each in found["tenant"]}
    rules = [
        Rule(_id(each["tenant"]), Level(each["level"]), each["from_milli"], each["after_days"])
        for each in found["rule"]
    ]
    taken: dict[tuple[str, int], list[Fields]] = {}
    for each in sorted(found["step"], key=lambda step: step["position"]):
        taken.setdefault((each["request"], each["version"]), []).append(each)
    for each in found["request"]:
        request = _request(each)
        yield (
            request,
            chains.of(
                request,
                [_step(step) for step in taken.get((each["id"], each["version"]), ())],
                tenants=tuple(ancestry.ancestors(request.project.tenant_id, parents=parents)),
                rules=rules,
            ),
        )


def _request(of: Fields) -> QuotaRequest:
    return QuotaRequest(
        id=UUID(of["id"]),
        version=of["version"],
        nominal_milli=of["nominal_milli"],
        project=Project(id=UUID(of["project"]), tenant_id=UUID(of["tenant"])),
        flavor=Flavor(kind=of["kind"], model=of["model"], profile=of["profile"]),
        requested_by=User(id=UUID(of["asker"]), username=of["name"]),
    )


def _step(of: Fields) -> RequestStep:
    return RequestStep(
        level=of["level"],
        tenant_id=_id(of["tenant"]),
        outcome=of["outcome"],
        granted_milli=of["granted_milli"],
        decided_by_id=_id(of["decided_by"]),
        on_behalf_of_id=_id(of["on_behalf_of"]),
    )


def _id(text: str | None) -> UUID | None:
    return UUID(text) if text else None
