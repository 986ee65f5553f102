"""Cycles, and `manage.py replay_cycle` of them."""

from datetime import datetime
from io import StringIO
from typing import Any

from django.core.management import call_command

from scheduler.core.policy import Policy
from scheduler.loop import run
from scheduler.models import CycleRecord
from tests.factories import AT


def cycle(at: datetime = AT, **policy: Any) -> CycleRecord:  # Any: fields of Policy
    record = run.run_cycle(at=at, policy=Policy(**policy))
    assert record is not None
    return record


def replay(*arguments: object) -> tuple[int, str]:
    """The exit status, and all that was said."""
    out = StringIO()
    try:
        call_command("replay_cycle", *map(str, arguments), stdout=out, stderr=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    return 0, out.getvalue()
