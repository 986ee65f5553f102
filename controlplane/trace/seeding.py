"""The rows a replay begins with: cluster, flavors, prices, tenants, projects, quotas, tokens.

What must not live here: nodes and devices, which the watcher reports; workloads, which come
through the API.
"""

import json
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Flavor, FlavorKind, Isolation
from clusters.services import clusters
from controlplane.trace.fleet import CLUSTER, CPU, CPU_PRICE, MODELS, TENANTS, Fleet, share, whole
from controlplane.trace.reading import NodeRow, PodRow
from tenants.models import (
    MAX_MIN_RUN_TIME_S,
    Member,
    Project,
    Quota,
    Rate,
    Role,
    Scope,
    Tenant,
    Token,
    User,
)
from tenants.services import tokens

_ACTOR = "system:trace"


@transaction.atomic
def seed(
    *, nodes: Sequence[NodeRow], pods: Sequence[PodRow], price: str, at: datetime
) -> dict[str, str]:
    """Make everything in an empty database; an API token by class of service.

    `price`, a decimal, is every model's per GPU and hour; "" leaves each model its own.
    """
    fleet = Fleet(nodes)
    clusters.register(name=CLUSTER, region="trace", actor=_ACTOR, actor_name="import-trace", at=at)
    flavors = _flavors(fleet, price, at)
    projects = {qos: _project(slug, name, at) for qos, (slug, name) in TENANTS.items()}
    Quota.objects.bulk_create(
        Quota(project=projects[qos], flavor=flavors[flavor], nominal_milli=nominal)
        for (qos, flavor), nominal in fleet.quotas(pods).items()
    )
    return {qos: _token(project, at) for qos, project in projects.items()}


def write_tokens(path: Path, texts: dict[str, str]) -> None:
    path.touch(mode=0o600)
    path.write_text(json.dumps(texts))


def _flavors(fleet: Fleet, one_price: str, at: datetime) -> dict[str, Flavor]:
    made: dict[str, tuple[Flavor, Decimal]] = {
        CPU: (Flavor(name=CPU, kind=FlavorKind.CPU), CPU_PRICE)
    }
    for model in fleet.gpus():
        price, memory_mib = MODELS[model]
        for name, kind, isolation in (
            (whole(model), FlavorKind.WHOLE, Isolation.HARDWARE),
            (share(model), FlavorKind.SHARE, Isolation.NONE),
        ):
            flavor = Flavor(
                name=name, kind=kind, model=model, isolation=isolation, memory_mib=memory_mib
            )
            made[name] = flavor, Decimal(one_price) if one_price else price
    Flavor.objects.bulk_create(flavor for flavor, _ in made.values())
    Rate.objects.bulk_create(
        Rate(
            flavor=flavor,
            price_per_hour=price,
            currency=settings.BERTH_CURRENCY,
            during=DateTimeTZRange(at - timedelta(days=1), None),
        )
        for flavor, price in made.values()
    )
    return {name: flavor for name, (flavor, _) in made.items()}


def _project(slug: str, name: str, at: datetime) -> Project:
    tenant = Tenant.objects.create(
        name=name, slug=slug, created_at=at, min_run_time_s=MAX_MIN_RUN_TIME_S
    )
    return Project.objects.create(
        tenant=tenant,
        name=name,
        slug=slug,
        namespace=f"{CLUSTER}-{slug}",
        created_at=at,
        least_isolation=Isolation.NONE,
    )


def _token(project: Project, at: datetime) -> str:
    """Made by hand: one that is issued lives for 90 days, which a replay sees pass in a minute."""
    user = User.objects.create(username=project.slug)
    Member.objects.create(user=user, project=project, role=Role.MEMBER)
    secret = secrets.token_hex(tokens.SECRET_BYTES)
    token = Token.objects.create(
        user=user,
        name="import-trace",
        digest=tokens.digest_of(secret),
        scopes=[Scope.READ, Scope.SUBMIT],
        created_at=at,
        expires_at=at + timedelta(days=100 * 365),
    )
    return f"{tokens.PREFIX}{token.id.hex}_{secret}"
