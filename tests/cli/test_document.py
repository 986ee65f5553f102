"""Untrusted YAML: where it is malformed, and what is not even read."""

import pytest

from controlplane.kernel.document import MAX_BYTES
from tests.cli.test_manifest import refusals

pytestmark = pytest.mark.part_web


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "nothing in it"),
        ("# only a comment\n", 1, "nothing in it"),
        ("- a\n- b\n", 1, "a Job or a Pod is wanted"),
        ("just text", 1, "a Job or a Pod is wanted"),
        ("kind: Pod\n  bad: indent\n", 2, "not YAML"),
        ("kind: [Pod\n", 2, "not YAML"),
        ("a: 'open\n", 2, "not YAML"),
        ("a: \x00\n", 1, "not YAML"),
        ('kind: Pod\na: "\\UFFFFFFFF"\n', 2, "not YAML: a number that is too large"),
        ('kind: Pod\na: "\\U00110000"\n', 2, "not YAML: a number that is too large"),
        (f"# first\n%YAML {'9' * 5000}.1\n---\na: 1\n", 2, "not YAML: a number that is too large"),
        ("kind: Pod\nkind: Job\n", 2, "it stands here twice"),
        ("? [a]\n: b\n", 1, "a key has to be text"),
        ("kind: Pod\n---\nkind: Pod\n", 2, "a second document"),
        ("a: &x 1\nb: *x\n", 1, "anchors and aliases"),
        ("a: !!python/object/apply:os.system [id]\n", 1, "tags are not accepted"),
        ("a: !!str 5\n", 1, "tags are not accepted"),
        ("a: " + "[" * 5000 + "]" * 5000, 1, "levels deep"),
        ("a: " + "{b: " * 40 + "}" * 40, 1, "levels deep"),
    ],
)
def test_it_says_where_a_document_is_malformed(text: str, line: int, said: str) -> None:
    first = refusals(text)[0]
    assert first.startswith(f"line {line}: ")
    assert said in first


def test_it_refuses_what_is_not_utf8_or_too_large() -> None:
    assert refusals(b"kind: Pod\nname: \xff\n") == ["line 2: not UTF-8"]
    assert refusals(b"#" * (MAX_BYTES + 1)) == ["line 1: more than 64 KiB"]
