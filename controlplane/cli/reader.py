"""Reading a document field by field: known ones are taken, every other one is named. Pure."""

from collections.abc import Mapping

from controlplane.cli import refusals
from controlplane.kernel.document import Node, Refusal


class Reader:
    """Keeps every refusal; its methods return what could be read all the same."""

    def __init__(self) -> None:
        self.found: list[Refusal] = []
        self.notes: list[str] = []
        self.places: dict[str, str] = {}

    def refuse(self, node: Node, why: str, name: str = "") -> None:
        self.found.append(Refusal(node.line, node.below(name) if name else node.path, why))

    def note(self, node: Node, what: str, name: str) -> None:
        """Say something of a field that refuses nothing."""
        self.notes.append(str(Refusal(node.line, node.below(name), what)))

    def comes_from(self, pointer: str, node: Node | None) -> None:
        """This part of the result was read there (nowhere: None)."""
        if node is not None:
            self.places[pointer] = f"line {node.line}: {node.path}"

    def fields(
        self, node: Node | None, known: set[str], refused: Mapping[str, str]
    ) -> dict[str, Node]:
        """The known fields of a mapping; the others are refused, by their own reason if they
        have one.

        An empty known field counts as left out.
        """
        if node is None:
            return {}
        if not isinstance(node.value, dict):
            self.refuse(node, f"a mapping is wanted, not {node.kind}")
            return {}
        for name, child in node.value.items():
            if name not in known:
                self._refuse_field(child, refused.get(name))
        return {
            name: child
            for name, child in node.value.items()
            if name in known and child.value is not None
        }

    def _refuse_field(self, node: Node, why: str | None) -> None:
        """Name the parts of `volumes` and `securityContext` too: they are what people look for."""
        name = node.path.rpartition(".")[2]
        parts = node.value if isinstance(node.value, list) else [node]
        inner = [
            child
            for part in parts
            if name in refusals.OPENED and isinstance(part.value, dict)
            for key, child in part.value.items()
            if key != "name"
        ]
        if not inner:
            self.refuse(node, why or refusals.UNKNOWN)
        for child in inner:
            key = child.path.rpartition(".")[2]
            self.refuse(child, refusals.INNER.get(key) or why or refusals.UNKNOWN)

    def text(self, node: Node | None, missing: Node | None = None, name: str = "") -> str:
        """A string. `missing` is the mapping that has to have it."""
        if node is None:
            if missing is not None:
                self.refuse(missing, "this field is required", name)
            return ""
        if not isinstance(node.value, str):
            self.refuse(node, f"text is wanted, not {node.kind}; put it in quotes")
            return ""
        return node.value

    def whole(
        self, node: Node | None, high: int, default: int | None = None, *, low: int = 1
    ) -> int | None:
        """A number from `low` to `high`; None when refused."""
        if node is None:
            return default
        bounds = f"from {low} to {high}"
        if type(node.value) is not int:
            self.refuse(node, f"a whole number {bounds} is wanted")
        elif not low <= node.value <= high:
            self.refuse(node, f"out of range: {bounds}")
        else:
            return node.value
        return None

    def texts(self, node: Node | None) -> list[str]:
        if node is None:
            return []
        if not isinstance(node.value, list):
            self.refuse(node, f"a list is wanted, not {node.kind}")
            return []
        return [self.text(item) for item in node.value]
