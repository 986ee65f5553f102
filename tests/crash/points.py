"""The crash points that there are."""

import ast

from tests.architecture.source import PACKAGES, nodes


def of_the_code() -> set[str]:
    """By name: each `crash("D3")` of the tree."""
    return {
        ast.literal_eval(node.args[0])
        for _, node in nodes(*PACKAGES)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "crash"
    }
