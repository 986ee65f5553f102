"""Templates are formatted, and leave the page's style and script to files (CSP)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
FORBIDDEN = {
    "an inline style": r"<[^>]*\sstyle\s*=",
    "a style element": r"<style\b",
    "an inline script": r"<script\b(?![^>]*\bsrc=)",
    "an event handler": r"<[^>]*\son[a-z]+\s*=",
    "htmx's inline code": r"\bhx-on\b|['\"]js:|['\"]javascript:|\bhx-trigger=\"[^\"]*\[",
    "unescaped text": r"\|\s*safe\b|{%\s*autoescape\s+off",
    "an address of another host": r"https?://|(?:src|href)=[\"']//",
}


def test_there_are_templates() -> None:
    assert TEMPLATES


def test_djade_has_nothing_to_change() -> None:
    program = Path(sys.executable).with_name("djade")
    done = subprocess.run(
        [program, "--target-version", "6.1", "--check", *TEMPLATES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_template_has(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what], re.IGNORECASE)
    assert [
        f"{file.relative_to(ROOT)}:{text.count('\n', 0, hit.start()) + 1}: {hit[0]}"
        for file in TEMPLATES
        for text in [
            re.sub(r"{#.*?#}|{% comment.*?endcomment %}", "", file.read_text(), flags=re.S)
        ]
        for hit in pattern.finditer(text)
    ] == []


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("an inline style", '<p class="a" style="color:red">'),
        ("a style element", "<style>p{}</style>"),
        ("an inline script", "<script>1</script>"),
        ("an event handler", '<a href="/" onclick="x()">'),
        ("htmx's inline code", '<p hx-on:click="x()">'),
        ("htmx's inline code", '<p hx-trigger="click[x()]">'),
        ("unescaped text", "{{ name|safe }}"),
        ("an address of another host", '<script src="https://cdn.example/x.js">'),
        ("an address of another host", '<script src="//cdn.example/x.js">'),
    ],
)
def test_the_rule_sees(what: str, line: str) -> None:
    assert re.search(FORBIDDEN[what], line, re.IGNORECASE)
