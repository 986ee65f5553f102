"""The parts of the suite, and how a test says that its part can't run on this machine.

What must not live here: pytest hooks (tests/plugin.py) and any check for a program.
"""

import os
from collections.abc import Container
from typing import NoReturn

import pytest

CORE = "core"
DATABASE = "database"
WEB = "web"
SIMULATOR = "contract (simulator)"
KUBERNETES = "contract (real Kubernetes)"
BROWSER = "browser"
CRASH = "crash points"
OTHER = "other"
PARTS = (CORE, DATABASE, WEB, SIMULATOR, KUBERNETES, BROWSER, CRASH, OTHER)

# A marker wins over the folder; each is registered by the plugin.
MARKERS = {
    "kube": KUBERNETES,
    "part_core": CORE,
    "part_database": DATABASE,
    "part_web": WEB,
    "part_simulator": SIMULATOR,
    "part_browser": BROWSER,
    "part_crash": CRASH,
}
FOLDERS = {
    "tests/core/": CORE,
    "tests/tenants/": DATABASE,
    "tests/clusters/": DATABASE,
    "tests/scheduler/": DATABASE,
    "tests/audit/": DATABASE,
    "tests/constraints/": DATABASE,
    "tests/web/": WEB,
    "tests/api/": WEB,
    "tests/oidc/": WEB,
    "tests/saml/": WEB,
    "tests/contract/": SIMULATOR,
    "tests/kube/": KUBERNETES,
    "tests/browser/": BROWSER,
    "tests/crash/": CRASH,
    "tests/hostile/": SIMULATOR,
}

# What this process could not run: (part, what it would have needed).
not_run: set[tuple[str, str]] = set()


def in_ci() -> bool:
    """Whether a part that can't run is a failure."""
    return os.environ.get("CI") == "true"


def missing(part: str, need: str) -> NoReturn:
    """Give up on this test or module because the machine lacks `need`, named as a user would.

    `missing(BROWSER, "Chromium (Debian: apt install chromium)")` prints one line at the end of
    the run; with CI=true it fails instead.
    """
    if part not in PARTS:
        raise ValueError(f"{part!r} is no part of the suite: {', '.join(PARTS)}")
    if in_ci():
        pytest.fail(f"{part} needs {need}; with CI=true every part has to run", pytrace=False)
    not_run.add((part, need))
    pytest.skip(f"{part} needs {need}", allow_module_level=True)


def part_of(nodeid: str, keywords: Container[str]) -> str:
    """The part a test counts for: its marker, else its cluster parameter, else its folder."""
    for marker, part in MARKERS.items():
        if marker in keywords:
            return part
    for folder, part in FOLDERS.items():
        if nodeid.startswith(folder):
            parameters = nodeid.partition("[")[2].rstrip("]").split("-")
            if part == SIMULATOR and not {"kube", "kubernetes"}.isdisjoint(parameters):
                return KUBERNETES
            return part
    return OTHER
