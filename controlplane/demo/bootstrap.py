"""The demo's one-off work in one process, because each further one imports Django again.

What must not live here: the seed itself (manage.py seed_demo), or any long-running part.
"""

import hashlib
import os
from pathlib import Path

import django


def main() -> None:
    """Migrate, collect the static files if they changed, seed, store how clusters are reached.
    Each step may run again."""
    django.setup()
    from django.core.management import call_command  # needs the apps

    from controlplane.demo import access
    from controlplane.kernel.clock import now

    call_command("migrate", verbosity=0, interactive=False)
    _collect()
    call_command("seed_demo", tokens=os.environ["BERTH_DEMO_TOKENS"])
    access.store(actor="system:demo", actor_name="demo", at=now())


def _collect() -> None:
    """Hashing and compressing takes seconds, so only what changed since last time is worth it."""
    from django.conf import settings
    from django.contrib.staticfiles.finders import get_finders
    from django.core.management import call_command

    digest = hashlib.sha256(settings.STORAGES["staticfiles"]["BACKEND"].encode())
    for finder in get_finders():
        for path, storage in finder.list([]):
            found = Path(storage.path(path)).stat()
            digest.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    stamp = Path(settings.STATIC_ROOT) / ".collected"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    call_command("collectstatic", verbosity=0, interactive=False, clear=True)
    stamp.write_text(digest.hexdigest())


if __name__ == "__main__":
    main()
