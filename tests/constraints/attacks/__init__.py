"""The table of attacks: for each wall, at least one statement it has to refuse."""

from tests.constraints.attacks import clusters, held, house, ledger, runs, tenants, workloads

ATTACKS = (
    *house.ATTACKS,
    *clusters.ATTACKS,
    *tenants.ATTACKS,
    *ledger.ATTACKS,
    *workloads.ATTACKS,
    *runs.ATTACKS,
    *held.ATTACKS,
)
