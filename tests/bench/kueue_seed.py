"""`python -m tests.bench.kueue_seed PLAN`: the rows that the whole path of Kueue's baseline begins
with, before the services start: a cluster, a flavor, five tenants of six projects, quotas, tokens.
"""

import json
import sys
from datetime import timedelta
from pathlib import Path

import django


def main(plan_file: str) -> None:
    django.setup()
    from django.core.management import call_command  # needs the apps

    call_command("migrate", verbosity=0, interactive=False)
    call_command("collectstatic", verbosity=0, interactive=False)
    texts = _seed()
    path = Path(json.loads(Path(plan_file).read_text())["tokens"])
    path.touch(mode=0o600)
    path.write_text(json.dumps(texts))


def _seed() -> dict[str, str]:
    """An API token by queue's number."""
    from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

    from clusters.models import Flavor, FlavorKind
    from clusters.services import clusters
    from controlplane.demo import access
    from controlplane.kernel.clock import now
    from tenants.access import actor_for
    from tenants.models import Member, Project, Quota, Rate, Role, Scope, Tenant, User
    from tenants.services import tokens
    from tests.bench.kueue import BORROWED, COHORTS, NOMINAL, QUEUES
    from tests.bench.kueue_path import CLUSTER

    at = now()
    clusters.register(name=CLUSTER, region="", actor="system:bench", actor_name="bench", at=at)
    access.store(actor="system:bench", actor_name="bench", at=at)
    flavor = Flavor.objects.create(name="cpu", kind=FlavorKind.CPU)
    Rate.objects.create(
        flavor=flavor,
        price_per_hour="0.02",
        currency="EUR",
        during=DateTimeTZRange(at - timedelta(days=1), None),
    )
    tenants = [
        Tenant.objects.create(name=f"Cohort {index}", slug=f"cohort-{index}", created_at=at)
        for index in range(COHORTS)
    ]
    texts = {}
    for queue in range(COHORTS * QUEUES):
        slug = f"queue-{queue}"
        project = Project.objects.create(
            tenant=tenants[queue % COHORTS], name=slug, slug=slug, namespace=slug, created_at=at
        )
        Quota.objects.create(
            project=project,
            flavor=flavor,
            nominal_milli=NOMINAL * 1000,
            borrowing_limit_milli=BORROWED * 1000,
        )
        user = User.objects.create(username=slug)
        Member.objects.create(user=user, project=project, role=Role.MEMBER)
        _, texts[str(queue)] = tokens.issue(
            actor=actor_for(user=user), name="bench", scopes=[Scope.READ, Scope.SUBMIT], at=at
        )
    return texts


if __name__ == "__main__":
    main(sys.argv[1])
