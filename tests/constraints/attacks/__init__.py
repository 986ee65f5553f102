"""The table of attacks: for each wall, at least one statement it has to refuse."""

from tests.constraints.attacks import (
    arrays,
    budgets,
    clusters,
    gates,
    held,
    house,
    idle,
    isolation,
    kept,
    ledger,
    moved,
    preferred,
    runs,
    tenant_quotas,
    tenants,
    workloads,
)

ATTACKS = (
    *house.ATTACKS,
    *clusters.ATTACKS,
    *tenants.ATTACKS,
    *tenant_quotas.ATTACKS,
    *budgets.ATTACKS,
    *ledger.ATTACKS,
    *workloads.ATTACKS,
    *arrays.ATTACKS,
    *gates.ATTACKS,
    *runs.ATTACKS,
    *idle.ATTACKS,
    *isolation.ATTACKS,
    *kept.ATTACKS,
    *moved.ATTACKS,
    *preferred.ATTACKS,
    *held.ATTACKS,
)
