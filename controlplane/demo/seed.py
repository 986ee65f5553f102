"""The demo's tenants, people, flavors, prices and quotas. Running it again changes nothing.

What must not live here: workloads, which `activity` submits as these people would.
"""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Cluster, Flavor, FlavorKind, Isolation
from clusters.services import clusters
from controlplane.demo.logins import LOGINS, PASSWORD
from tenants import access
from tenants.models import Member, Project, Quota, Rate, Role, Scope, Tenant, Token, User
from tenants.services import tokens

_A100, _H100, _L4, _T4 = "A100-SXM4-80GB", "H100-80GB-HBM3", "L4", "Tesla-T4"

# name, kind, model, profile, isolation, MiB of device memory, EUR per unit and hour
FLAVORS = (
    ("h100-80gb", FlavorKind.WHOLE, _H100, "", Isolation.HARDWARE, 81559, "3.90"),
    ("h100-80gb.1g.10gb", FlavorKind.MIG, _H100, "1g.10gb", Isolation.HARDWARE, 9984, "0.56"),
    ("h100-80gb.2g.20gb", FlavorKind.MIG, _H100, "2g.20gb", Isolation.HARDWARE, 20096, "1.12"),
    ("h100-80gb.3g.40gb", FlavorKind.MIG, _H100, "3g.40gb", Isolation.HARDWARE, 40448, "1.95"),
    ("a100-80gb", FlavorKind.WHOLE, _A100, "", Isolation.HARDWARE, 81920, "2.20"),
    ("a100-80gb.1g.10gb", FlavorKind.MIG, _A100, "1g.10gb", Isolation.HARDWARE, 9984, "0.32"),
    ("a100-80gb.2g.20gb", FlavorKind.MIG, _A100, "2g.20gb", Isolation.HARDWARE, 20096, "0.63"),
    ("a100-80gb.3g.40gb", FlavorKind.MIG, _A100, "3g.40gb", Isolation.HARDWARE, 40448, "1.10"),
    ("l4", FlavorKind.WHOLE, _L4, "", Isolation.HARDWARE, 23034, "0.70"),
    ("l4.share", FlavorKind.SHARE, _L4, "", Isolation.NONE, 23034, "0.70"),
    ("t4", FlavorKind.WHOLE, _T4, "", Isolation.HARDWARE, 15360, "0.35"),
    ("t4.share", FlavorKind.SHARE, _T4, "", Isolation.NONE, 15360, "0.35"),
    ("cpu", FlavorKind.CPU, "", "", Isolation.HARDWARE, 0, "0.02"),
)

# slug → (name, parent's slug)
TENANTS = {
    "vision": ("Vision Lab", ""),
    "perception": ("Perception", "vision"),
    "robotics": ("Robotics", "vision"),
    "language": ("Language Lab", ""),
    "climate": ("Climate Lab", ""),
}

# (tenant, slug) → (name, nominal whole units by flavor)
PROJECTS: dict[tuple[str, str], tuple[str, dict[str, int]]] = {
    ("perception", "segmentation"): (
        "Segmentation",
        {"h100-80gb": 8, "a100-80gb": 8, "a100-80gb.1g.10gb": 14, "a100-80gb.2g.20gb": 4,
         "a100-80gb.3g.40gb": 2, "h100-80gb.1g.10gb": 8, "h100-80gb.2g.20gb": 6, "l4": 2,
         "l4.share": 2, "cpu": 48},
    ),
    ("robotics", "grasping"): (
        "Grasping",
        {"h100-80gb": 4, "a100-80gb": 8, "a100-80gb.1g.10gb": 6, "l4": 2, "l4.share": 2, "t4": 2,
         "t4.share": 2, "cpu": 48},
    ),
    ("language", "pretraining"): (
        "Pretraining",
        {"h100-80gb": 24, "a100-80gb": 8, "h100-80gb.3g.40gb": 4, "cpu": 64},
    ),
    ("language", "serving"): (
        "Serving",
        {"h100-80gb.1g.10gb": 12, "h100-80gb.2g.20gb": 4, "a100-80gb.1g.10gb": 6, "l4": 4,
         "l4.share": 2, "t4": 4, "t4.share": 2, "cpu": 64},
    ),
    ("climate", "downscaling"): (
        "Downscaling",
        {"h100-80gb": 12, "a100-80gb": 0, "a100-80gb.3g.40gb": 2, "a100-80gb.1g.10gb": 4,
         "t4": 2, "t4.share": 2, "cpu": 96},
    ),
}  # fmt: skip

# username → (tenant, or project as tenant/slug, or "" for the fleet; role)
MEMBERS = {
    "ada": ("vision", Role.OWNER),
    "ben": ("perception", Role.MEMBER),
    "cleo": ("language", Role.MEMBER),
    "dora": ("climate", Role.MEMBER),
    "oz": ("", Role.OPERATOR),
    "pia": ("", Role.APPROVER),
}
CLUSTERS = {"north": "eu-north", "south": "eu-south"}
_ACTOR = "system:demo"


@transaction.atomic
def seed(*, at: datetime) -> None:
    """Make what is missing."""
    for name, region in CLUSTERS.items():
        if not Cluster.objects.filter(name=name).exists():
            clusters.register(name=name, region=region, actor=_ACTOR, actor_name="demo", at=at)
    flavors = _flavors(at)
    tenants = _tenants(at)
    _projects(tenants, flavors, at)
    _people(tenants)


def _flavors(at: datetime) -> dict[str, Flavor]:
    made = {}
    for name, kind, model, profile, isolation, memory_mib, price in FLAVORS:
        flavor, new = Flavor.objects.get_or_create(
            name=name,
            defaults={
                "kind": kind,
                "model": model,
                "profile": profile,
                "isolation": isolation,
                "memory_mib": memory_mib,
            },
        )
        made[name] = flavor
        if new:
            Rate.objects.create(
                flavor=flavor,
                price_per_hour=Decimal(price),
                currency=settings.BERTH_CURRENCY,
                during=DateTimeTZRange(at - timedelta(days=1), None),
            )
    return made


def _tenants(at: datetime) -> dict[str, Tenant]:
    made: dict[str, Tenant] = {}
    for slug, (name, parent) in TENANTS.items():
        made[slug], _ = Tenant.objects.get_or_create(
            slug=slug,
            defaults={"name": name, "parent": made.get(parent), "created_at": at},
        )
    return made


def _projects(tenants: dict[str, Tenant], flavors: dict[str, Flavor], at: datetime) -> None:
    for (tenant, slug), (name, nominal) in PROJECTS.items():
        project, new = Project.objects.get_or_create(
            tenant=tenants[tenant],
            slug=slug,
            defaults={
                "name": name,
                "namespace": f"berth-{tenant}-{slug}",
                "created_at": at,
                "least_isolation": _accepted(flavors[flavor] for flavor in nominal),
            },
        )
        if new:
            Quota.objects.bulk_create(
                Quota(project=project, flavor=flavors[flavor], nominal_milli=units * 1000)
                for flavor, units in nominal.items()
            )


def _accepted(flavors: Iterable[Flavor]) -> str:
    """The least that any of them isolates: a project accepts what it has a quota of."""
    given = {flavor.isolation for flavor in flavors}
    return next(each for each in Isolation.values if each in given)


def _people(tenants: dict[str, Tenant]) -> None:
    password = make_password(PASSWORD)
    for login in LOGINS:
        user, new = User.objects.get_or_create(
            username=login.username, defaults={"password": password}
        )
        place, role = MEMBERS[login.username]
        if new:
            Member.objects.create(user=user, tenant=tenants.get(place), role=role)


def write_tokens(path: Path, *, at: datetime) -> None:
    """One fresh API token a person, for scripts on this machine; the ones before are revoked."""
    texts = {}
    for login in LOGINS:
        user = User.objects.get(username=login.username)
        Token.objects.filter(user=user, name="demo", revoked_at=None).update(revoked_at=at)
        _, texts[login.username] = tokens.issue(
            actor=access.actor_for(user=user),
            name="demo",
            scopes=[Scope.READ, Scope.SUBMIT, Scope.QUOTA],
            at=at,
        )
    path.touch(mode=0o600)
    path.write_text(json.dumps(texts))
