"""The main path on the whole thing: real processes, two people, two tenants, one browser each."""

import os
import subprocess
import sys
from pathlib import Path

from tests import parts
from tests.browser.conftest import CHROMIUM

ROOT = Path(__file__).resolve().parents[2]
# The suite's own servers and settings are not for an installation of its own.
_OURS = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "DJANGO_SETTINGS_MODULE")


def test_two_tenants_submit_run_and_see_their_spend() -> None:
    if CHROMIUM is None:
        parts.missing(parts.BROWSER, "Chromium (Debian: apt install chromium)")
    environ = {name: value for name, value in os.environ.items() if name not in _OURS}
    done = subprocess.run(
        [sys.executable, "manage.py", "smoke", "--steps", "tests.browser.walk"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for errand in ("walk-mig", "walk-gang"):
        assert f"{errand} has succeeded" in done.stdout
