"""Untrusted YAML as plain values that remember their line. Pure; knows nothing of Kubernetes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

MAX_BYTES = 64 * 1024
_MAX_DEPTH = 32
_TAG = "tag:yaml.org,2002:"
# Larger than anything is taken; still a number, so that it can be called out of range.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,399}")

type Value = dict[str, Node] | list[Node] | str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """`line` counts from 1; `field` is the path in the document, "" for the document itself."""

    line: int
    field: str
    why: str

    def __str__(self) -> str:
        return f"line {self.line}: {f'{self.field}: ' if self.field else ''}{self.why}"


class Refused(Exception):
    """The document can't be taken; every reason, in the order of their lines."""

    def __init__(self, refusals: list[Refusal]) -> None:
        self.refusals = sorted(refusals, key=lambda each: each.line)
        super().__init__("\n".join(map(str, self.refusals)))


@dataclass(frozen=True, slots=True)
class Node:
    """A value, the path to it, and the line where it (or its key) stands."""

    line: int
    path: str
    value: Value

    def below(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    @property
    def kind(self) -> str:
        """What it is, in a reader's words."""
        match self.value:
            case dict():
                return "a mapping"
            case list():
                return "a list"
            case bool():
                return "true or false"
            case str():
                return "text"
            case None:
                return "nothing"
        return "a number"


def load(text: bytes) -> Node:
    """The one document in `text`. Raises Refused for anything that is not plain YAML of one
    document: too large, not UTF-8, malformed, several documents, anchors, aliases, tags,
    repeated keys.
    """
    if len(text) > MAX_BYTES:
        raise Refused([Refusal(1, "", f"more than {MAX_BYTES // 1024} KiB")])
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise Refused([Refusal(line, "", "not UTF-8")]) from error
    try:
        _scan(decoded)
        root = yaml.compose(decoded, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise Refused([Refusal(line, "", f"not YAML: {error.problem or 'malformed'}")]) from error
    except yaml.YAMLError as error:
        raise Refused([Refusal(1, "", "not YAML: a character that YAML does not know")]) from error
    if root is None:
        raise Refused([Refusal(1, "", "nothing in it")])
    faults: list[Refusal] = []
    node = _node(root, "", 1, faults)
    if faults:
        raise Refused(faults)
    return node


def _scan(text: str) -> None:
    """Refuse what may not even be composed: depth, aliases, tags, a second document."""
    depth = documents = 0
    for event in _events(text):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise Refused([Refusal(line, "", "a second document; only one is taken")])
        elif isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Refused([Refusal(line, "", "anchors and aliases are not accepted")])
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise Refused([Refusal(line, "", f"nested more than {_MAX_DEPTH} levels deep")])
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if getattr(event, "tag", None):
            raise Refused([Refusal(line, "", "tags are not accepted")])


def _events(text: str) -> Iterator[yaml.Event]:
    """PyYAML makes a number of any digits in an escape or a directive, and may fail at that."""
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_event():
            yield loader.get_event()  # type: ignore[no-untyped-call]  # no stub has it
    except (ValueError, OverflowError) as error:
        said = "not YAML: a number that is too large"
        raise Refused([Refusal(loader.line + 1, "", said)]) from error


def _node(node: yaml.Node, path: str, line: int, faults: list[Refusal]) -> Node:
    match node:
        case yaml.MappingNode():
            return Node(line, path, dict(_entries(node, path, faults)))
        case yaml.SequenceNode():
            items = [
                _node(item, f"{path}[{index}]", item.start_mark.line + 1, faults)
                for index, item in enumerate(node.value)
            ]
            return Node(line, path, items)
    return Node(line, path, _scalar(node))


def _entries(
    node: yaml.MappingNode, path: str, faults: list[Refusal]
) -> Iterator[tuple[str, Node]]:
    seen = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        name = key.value if isinstance(key, yaml.ScalarNode) else "?"
        below = f"{path}.{name}" if path else name
        if not isinstance(key, yaml.ScalarNode):
            faults.append(Refusal(line, path, "a key has to be text"))
        elif name in seen:
            faults.append(Refusal(line, below, "it stands here twice"))
        seen.add(name)
        yield name, _node(value, below, line, faults)


def _scalar(node: yaml.Node) -> str | int | float | bool | None:
    """Booleans, integers and null as such; every other scalar as the text that stands there."""
    text: str = node.value
    if node.tag == f"{_TAG}null":
        return None
    if node.tag == f"{_TAG}bool":
        return text.lower() in {"true", "yes", "on"}
    if node.tag == f"{_TAG}int" and _INTEGER.fullmatch(text):
        return int(text)
    if node.tag == f"{_TAG}float":
        try:
            return float(text)
        except ValueError:
            return text
    return text
