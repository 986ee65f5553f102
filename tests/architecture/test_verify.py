"""`manage.py verify` runs every step to its end and says which failed."""

import shutil
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command

from controlplane.management.commands import verify
from controlplane.management.commands.verify import Step
from tests.architecture.source import ROOT

GOOD = Step("good", [sys.executable, "-c", "print('nothing to say')"])
BAD = Step("bad", [sys.executable, "-c", "raise SystemExit('the reason')"])
GONE = Step("gone", [Path("/nowhere/program")])


def _run(monkeypatch: pytest.MonkeyPatch, steps: list[Step], *only: str) -> tuple[str, str]:
    monkeypatch.setattr(verify, "steps", lambda: steps)
    out = StringIO()
    try:
        call_command("verify", *only, stdout=out)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


def test_each_step_has_a_line_with_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    out, error = _run(monkeypatch, [GOOD])
    assert error == ""
    word, _, unit, name = out.split()
    assert (word, unit, name) == ("ok", "s", "good")


@pytest.mark.parametrize(("step", "said"), [(BAD, "the reason"), (GONE, "/nowhere/program")])
def test_a_failure_is_shown_and_stops_nothing(
    step: Step, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, error = _run(monkeypatch, [step, GOOD])
    assert error == f"1 of 2 failed: {step.name}"
    assert said in out
    assert "good" in out


def test_only_the_named_steps_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run(monkeypatch, [GOOD, BAD], "good")[1] == ""
    assert _run(monkeypatch, [GOOD, BAD], "no such")[1] == "There is no step no such."


def test_every_step_is_a_program_that_is_there() -> None:
    for step in verify.steps():
        assert shutil.which(step.command[0]), step.name


def _said(command: Sequence[str | Path]) -> set[str]:
    """A command's program by its name, and its words that are no options."""
    program, *rest = map(str, command)
    return {Path(program).name, *(word for word in rest if not word.startswith("-"))}


def test_what_a_commit_is_checked_for_ci_checks_too() -> None:
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    steps = [_said(step.command) for step in verify.steps()]
    assert len(repo["hooks"]) > 3
    for hook in repo["hooks"]:
        asked = _said(hook["entry"].split())
        assert any(asked <= step for step in steps), hook["id"]
