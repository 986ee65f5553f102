"""A replay's one-off work before the services start: migrate, collect static files, seed."""

import sys
from pathlib import Path

import django


def main(plan_file: str) -> None:
    django.setup()
    from django.core.management import call_command  # needs the apps

    from controlplane.demo import access
    from controlplane.kernel.clock import now
    from controlplane.trace import seeding
    from controlplane.trace.plan import Plan

    plan = Plan.read(Path(plan_file))
    call_command("migrate", verbosity=0, interactive=False)
    call_command("collectstatic", verbosity=0, interactive=False)
    texts = seeding.seed(
        nodes=plan.read_nodes(), pods=plan.read_pods(), price=plan.price, at=now()
    )
    seeding.write_tokens(Path(plan.tokens), texts)
    access.store(actor="system:trace", actor_name="import-trace", at=now())


if __name__ == "__main__":
    main(sys.argv[1])
