"""A cluster is reached by a Configuration made by hand, never by the client's kubeconfig loader.

The loader runs programs that a kubeconfig names, so who may write one may run code as Berth
(reliability T1).
"""

import ast
import re

import pytest

from tests.architecture.source import PACKAGES, nodes, place

_LOADER = re.compile(r"load_(kube|incluster)_config|new_client_from_config|KubeConfigLoader")


def loads_a_kubeconfig(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return any(name.name.startswith("kubernetes.config") for name in names)
        case ast.ImportFrom(module=str(module), names=names):
            whole = {f"{module}.{name.name}" for name in names}
            return any(name.startswith("kubernetes.config") for name in {module, *whole})
        case ast.Attribute(attr=name, value=value):
            return bool(_LOADER.search(name)) or ast.unparse(value) == "kubernetes.config"
        case ast.Name(id=name):
            return bool(_LOADER.search(name))
        case ast.Constant(value=str(text)):
            return text.startswith("kubernetes.config")
    return False


def test_nobody_uses_the_kubeconfig_loader() -> None:
    # The tests of this folder name it; every other file of the suite is looked at too.
    found = [
        place(file, node)
        for file, node in nodes(*PACKAGES, "tests")
        if "tests/architecture/" not in file.as_posix() and loads_a_kubeconfig(node)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "import kubernetes.config",
        "import kubernetes.config.kube_config as k",
        "from kubernetes import client, config",
        "from kubernetes.config import load_kube_config",
        "from kubernetes.config.kube_config import KubeConfigLoader",
        "kubernetes.config.load_config()",
        "config.load_kube_config(path)",
        "config.load_incluster_config()",
        "load_kube_config_from_dict(content)",
        "import_module('kubernetes.config')",
    ],
)
def test_the_rule_sees(line: str) -> None:
    assert any(loads_a_kubeconfig(node) for node in ast.walk(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "from kubernetes import client",
        "from kubernetes.client import Configuration",
        "from kubernetes.client.configuration import Configuration",
        "config = Configuration()",
    ],
)
def test_the_rule_lets_pass(line: str) -> None:
    assert not any(loads_a_kubeconfig(node) for node in ast.walk(ast.parse(line)))
