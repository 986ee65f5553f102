"""The import contracts are kept, and each of them would notice."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract
from importlinter.domain.contract import Contract

from tests.architecture.source import PACKAGES, ROOT

TYPES: dict[str, type[Contract]] = {
    "acyclic_siblings": AcyclicSiblingsContract,
    "forbidden": ForbiddenContract,
    "layers": LayersContract,
    "protected": ProtectedContract,
}
CONFIGURATION: dict[str, Any] = read_configuration(
    str(ROOT / "pyproject.toml")
)  # Any: as the tool reads it
CONTRACTS: dict[str, dict[str, Any]] = {
    each["name"]: each for each in CONFIGURATION["contracts_options"]
}

PURE = "Core, pricing, port and credentials know no framework"

# For each contract that isn't one of layers: an import that it has to refuse.
FORBIDDEN = (
    (PURE, "scheduler.core.quota.quota", "django"),
    (PURE, "scheduler.core.quota.quota", "controlplane.kernel"),
    (PURE, "tenants.pricing", "django"),
    (PURE, "clusters.port", "kubernetes"),
    (
        "Only its adapter speaks through the kubernetes client",
        "clusters.services.inventory",
        "kubernetes",
    ),
    (
        "Only the registry makes adapters",
        "clusters.services.inventory",
        "clusters.adapters.kubernetes.adapter",
    ),
    ("Pages and API never run the loop", "scheduler.web.api", "scheduler.loop.run"),
    ("Pages and API never run the loop", "scheduler.web.api", "scheduler.tasks"),
    ("Pages and API never run the loop", "controlplane.api.views", "scheduler.tasks"),
    ("No cycles", "controlplane.kernel.errors", "controlplane.api.errors"),
    ("No cycles", "tenants.models.tenant", "tenants.models.project"),
    ("No cycles", "scheduler.core.placing.layouts", "scheduler.core.placing.place"),
)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


def _kept(name: str, graph: grimp.ImportGraph) -> bool:
    options = CONTRACTS[name]
    contract = TYPES[options["type"]](
        name=name, session_options=CONFIGURATION["session_options"], contract_options=options
    )
    return contract.check(deepcopy(graph), verbose=False).kept


def _with(graph: grimp.ImportGraph, importer: str, imported: str) -> grimp.ImportGraph:
    modules = graph.modules
    assert importer in modules, f"the contract guards {importer}, which is not there"
    assert imported in modules or imported.split(".")[0] not in PACKAGES, f"no {imported}"
    mutant = deepcopy(graph)
    if imported not in modules:
        mutant.add_module(imported, is_squashed=True)
    mutant.add_import(importer=importer, imported=imported)
    return mutant


def _layers() -> Iterator[tuple[str, str, str]]:
    """An import that may not be, for each two neighbouring layers and each two modules of one."""
    for name, options in CONTRACTS.items():
        if options["type"] != "layers":
            continue
        prefix = f"{options['containers'][0]}." if "containers" in options else ""
        rows = [
            [prefix + module.strip().strip("()") for module in layer.split("|")]
            for layer in options["layers"]
        ]
        for upper, lower in pairwise(rows):
            yield name, lower[0], upper[0]
        for row in rows:
            for importer, imported in permutations(row, 2):
                yield name, importer, imported


@pytest.mark.parametrize("name", CONTRACTS)
def test_the_tree_keeps(name: str, graph: grimp.ImportGraph) -> None:
    assert _kept(name, graph)


@pytest.mark.parametrize(("name", "importer", "imported"), [*FORBIDDEN, *_layers()])
def test_one_wrong_import_breaks(
    name: str, importer: str, imported: str, graph: grimp.ImportGraph
) -> None:
    assert not _kept(name, _with(graph, importer, imported))


def test_every_contract_is_proved_to_break() -> None:
    assert {name for name, *_ in [*FORBIDDEN, *_layers()]} == set(CONTRACTS)
    assert len(CONTRACTS) == 9


def test_every_module_has_a_layer(graph: grimp.ImportGraph) -> None:
    """`exhaustive` does this inside core and loop; the four packages have no container of their
    own."""
    layers = {
        module.strip() for row in CONTRACTS["One direction"]["layers"] for module in row.split("|")
    }
    modules = {module for package in PACKAGES for module in graph.find_children(package)}
    # Read by Django by name, and importing nothing that their own app does not.
    known = {"apps", "migrations", "settings", "admin"}
    assert {each for each in modules - layers if each.split(".")[1] not in known} == set()


def test_a_new_module_of_the_core_needs_a_layer(graph: grimp.ImportGraph) -> None:
    mutant = deepcopy(graph)
    mutant.add_module("scheduler.core.surprise")
    assert not _kept("Inside the core", mutant)


@pytest.mark.parametrize(("line", "verdict"), [("", "KEPT"), ("\nimport django\n", "BROKEN")])
def test_lint_imports_itself_reads_these_contracts(
    line: str, verdict: str, tmp_path: Path
) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("static", "*.pyc")
        )
    with (tmp_path / "scheduler/core/quota/quota.py").open("a") as file:
        file.write(line)
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-cache"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert f"Core, pricing, port and credentials know no framework {verdict}" in done.stdout
    assert not line or done.returncode != 0
