"""`manage.py verify`: what CI checks besides the tests. Each step is a program of its own.

What must not live here: a check of our own (those are tests, in tests/architecture).
"""

import os
import secrets
import shutil
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

AT_ONCE = 2
_DJANGO = "6.1"


@dataclass(frozen=True, slots=True)
class Step:
    """One program. `environ` is added to this process's."""

    name: str
    command: Sequence[str | Path]
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    step: Step
    ok: bool
    took_s: float
    output: str


def steps() -> list[Step]:
    """The longest first, so that two at a time end soonest."""
    root = Path(settings.BASE_DIR)
    manage = (sys.executable, root / "manage.py")
    testing = {"DJANGO_SETTINGS_MODULE": "controlplane.settings.test"}
    templates = sorted((root / "templates").rglob("*.html"))
    return [
        Step("mypy", [_tool("mypy")]),
        Step("migrations", [*manage, "makemigrations", "--check", "--dry-run"], testing),
        Step(
            "check --deploy", [*manage, "check", "--deploy", "--fail-level=WARNING"], _production()
        ),
        Step("import contracts", [_tool("lint-imports"), "--no-cache", "--no-logo"]),
        Step("lock", [_uv(root), "lock", "--check"]),
        Step("ruff check", [_tool("ruff"), "check", "--output-format=concise", "."]),
        Step("ruff format", [_tool("ruff"), "format", "--check", "--output-format=concise", "."]),
        Step("templates", [_tool("djade"), "--target-version", _DJANGO, "--check", *templates]),
    ]


def _tool(name: str) -> Path:
    """The environment's own, whatever PATH says."""
    return Path(sys.executable).with_name(name)


def _uv(root: Path) -> Path:
    """uv on the PATH, else the one that ./dev brought; the step fails when there is neither."""
    return Path(shutil.which("uv") or root / ".dev/uv/bin/uv")


def _production() -> dict[str, str]:
    """What an installation has to set, with values for this check only."""
    return {
        "DJANGO_SETTINGS_MODULE": "controlplane.settings.prod",
        "BERTH_SECRET_KEY": secrets.token_urlsafe(64),
        "BERTH_ALLOWED_HOSTS": "berth.example.org",
        "BERTH_TRUSTED_ORIGINS": "https://berth.example.org",
        "BERTH_MFA_ROLES": "approver operator",
    }


def run(step: Step) -> Result:
    started = time.monotonic()
    try:
        done = subprocess.run(
            [str(word) for word in step.command],
            cwd=settings.BASE_DIR,
            env={**os.environ, **step.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        ok, output = done.returncode == 0, done.stdout
    except OSError as error:
        ok, output = False, f"{error.filename}: {error.strerror}"
    return Result(step, ok, time.monotonic() - started, output)


class Command(BaseCommand):
    help = "Run the linters, the type checker, the import contracts and the other checks of CI."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = [step.name for step in steps()]
        parser.add_argument("only", nargs="*", help=f"only these steps, of: {', '.join(names)}")

    def handle(self, *, only: Sequence[str], **_: Any) -> None:  # Any: Django's own options
        chosen = [step for step in steps() if not only or step.name in only]
        if unknown := set(only) - {step.name for step in chosen}:
            raise CommandError(f"There is no step {', '.join(sorted(unknown))}.")
        failed = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for future in as_completed([pool.submit(run, step) for step in chosen]):
                result = future.result()
                word = "ok" if result.ok else "FAILED"
                self.stdout.write(f"{word:6} {result.took_s:6.1f} s  {result.step.name}")
                if not result.ok:
                    failed.append(result.step.name)
                    self.stdout.write(result.output)
        if failed:
            raise CommandError(
                f"{len(failed)} of {len(chosen)} failed: {', '.join(sorted(failed))}"
            )
