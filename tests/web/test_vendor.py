"""The vendored front-end files are the ones that VENDOR.json pins; colours are told apart."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "controlplane" / "static"
VENDOR = STATIC / "vendor"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
PACKAGES: list[dict[str, Any]] = json.loads((VENDOR / "VENDOR.json").read_text())["packages"]


def _pinned() -> list[tuple[str, str]]:
    entries = [entry for package in PACKAGES for entry in package["files"].items()]
    entries += [(p["sprite"]["file"], p["sprite"]) for p in PACKAGES if "sprite" in p]
    return [(name, entry["sha256"]) for name, entry in entries]


@pytest.mark.parametrize(("name", "sha256"), _pinned())
def test_a_file_is_as_pinned(name: str, sha256: str) -> None:
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == sha256


def test_every_file_is_pinned() -> None:
    here = {str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file()}
    assert here - {"VENDOR.json", "update"} == {n for n, _ in _pinned() if not n.startswith("..")}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package["name"])
def test_a_package_has_version_licence_and_integrity(package: dict[str, Any]) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
    assert package["licence"] in {"0BSD", "MIT", "OFL-1.1"}
    assert package["integrity"].startswith("sha512-")
    assert any(name.endswith("/LICENSE") for name in package["files"])


def test_nothing_names_a_source_map() -> None:
    for path in [*STATIC.rglob("*.js"), *STATIC.rglob("*.css")]:
        assert "sourceMappingURL" not in path.read_text(), path


def test_the_sprite_has_the_icons_that_pages_name_and_no_other() -> None:
    sprite = set(re.findall(r'<symbol id="([^"]+)"', (STATIC / "icons.svg").read_text()))
    named = {
        name
        for template in TEMPLATES
        for name in re.findall(r"(?:{% icon |\bicon=)\"([^\"]+)\"", template.read_text())
    }
    from controlplane.templatetags.berth import NAV, STATUSES

    named |= {look.icon for look in STATUSES.values()} | {entry[2] for entry in NAV}
    named |= {"help-circle"}
    assert named == sprite


def test_the_static_files_can_be_collected_with_hashed_names(tmp_path: Path) -> None:
    storage = ManifestStaticFilesStorage(location=tmp_path)
    found = {}
    for path in [p for p in STATIC.rglob("*") if p.suffix in {".css", ".js", ".svg", ".woff2"}]:
        name = str(path.relative_to(STATIC))
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(path.read_bytes())
        found[name] = (storage, name)
    for name, _hashed, problem in storage.post_process(found):
        assert not isinstance(problem, Exception), f"{name}: {problem}"


PAIR = re.compile(r"(--[\w-]+): light-dark\(#([0-9a-f]{3,6}), #([0-9a-f]{3,6})\)")


def _luminance(colour: str) -> float:
    full = colour if len(colour) == 6 else "".join(digit * 2 for digit in colour)
    parts = [int(full[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    """WCAG 2: 1 to 21."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


COLOURS = {name: pair for name, *pair in PAIR.findall((STATIC / "app.css").read_text())}
STATES = ("wait", "go", "run", "done", "bad", "warn", "stop")
READ = [
    *((f"--{state}-ink", f"--{state}-bg") for state in STATES),
    *((f"--tone-{n}", "--on-tone") for n in range(1, 9)),
    *((f"--tblr-{ink}", ground) for ink in ("secondary", "body-color", "link-color")
      for ground in ("--tblr-bg-surface", "--tblr-body-bg", "--soft")),
]  # fmt: skip
SEEN = [(f"--tone-{n}", "--tblr-bg-surface") for n in range(1, 9)] + [
    ("--line-strong", "--tblr-bg-forms"),
    ("--focus", "--tblr-bg-surface"),
    ("--focus", "--tblr-body-bg"),
]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "ground", "least"), [
    *((ink, ground, 4.5) for ink, ground in READ),
    *((ink, ground, 3.0) for ink, ground in SEEN),
])  # fmt: skip
def test_colours_are_told_apart(ink: str, ground: str, least: float, theme: int) -> None:
    assert _contrast(COLOURS[ink][theme], COLOURS[ground][theme]) >= least
