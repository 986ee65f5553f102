"""Tests that share what a machine has room for once: one worker of xdist runs all of a group.

By their ids: xdist's own marks for groups have no effect since pytest 9.2.
"""

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

KUBE = "kube"
INSTALLATIONS = "installations"
_STARTS = {
    "tests/kube/": KUBE,
    "tests/faults/test_matrix.py": KUBE,
    # Whole installations: two at once starve each other.
    "tests/browser/test_walk.py": INSTALLATIONS,
    "tests/demo/test_airgap.py": INSTALLATIONS,
    "tests/demo/test_smoke.py": INSTALLATIONS,
    "tests/trace/test_replay.py": INSTALLATIONS,
}


def group_of(nodeid: str) -> str:
    """The group of the test; one that may run anywhere is of its own."""
    if nodeid.startswith("tests/contract/") and "kubernetes" in nodeid.partition("[")[2]:
        return KUBE
    found = (group for start, group in _STARTS.items() if nodeid.startswith(start))
    return next(found, nodeid)


class Grouped(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Whole groups first, the largest before all; then test after test, to whoever is free."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
