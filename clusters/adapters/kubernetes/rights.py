"""The rights that the adapter needs: to be granted, and to be probed.

A right that no request of the adapter uses does not belong here.
"""

from typing import NamedTuple

from clusters.adapters.kubernetes import owners


class Right(NamedTuple):
    """`group` is the API group of the resource, "" for the core one."""

    verb: str
    resource: str
    why: str
    group: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


RIGHTS = (
    Right("list", "nodes", "see what hardware there is"),
    Right("watch", "nodes", "hear of machines that come, go and fall ill"),
    Right("list", "pods", "see what runs, and what others hold of the machines"),
    Right("watch", "pods", "hear of starts and ends"),
    Right("get", "pods", "read one before its gate is opened"),
    Right("create", "pods", "create one, behind its gate"),
    Right("patch", "pods", "open its gate, and give it notice"),
    Right("delete", "pods", "stop it, and collect what ended"),
    Right("get", "namespaces", "see whose a project's namespace is"),
    Right("create", "namespaces", "make one for each project"),
    Right("patch", "namespaces", "keep it as it should be (server-side apply)"),
    Right("get", "services", "see whose a gang's service is"),
    Right("create", "services", "let the ranks of a gang find each other"),
    Right("delete", "services", "take a gang's service away after its end"),
)

CATCHING = tuple(
    Right("get", kind.plural, f"see how many pods of a {name} start together", group)
    for (group, name), kind in owners.KINDS.items()
    if group  # to read a pod is a right above
)
"""What is needed besides where others' work is caught; for what isn't installed it grants
nothing."""
