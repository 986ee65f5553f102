"""PostgreSQL and Valkey for one benchmark, with the demo's settings: it waits for the disk.

What imports models is imported within.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import django

from controlplane.embedded.backing import Backing
from controlplane.embedded.place import temporary
from controlplane.embedded.process import server_account


@contextmanager
def servers(kind: str) -> Iterator[None]:
    """Both, gone in the end; Django is set up to use them, as are processes that are started."""
    scratch, lock = temporary(kind, server_account())
    backing = Backing(data=scratch / "postgres", run=scratch, logs=scratch)
    try:
        backing.start()
        settings = {"DJANGO_SETTINGS_MODULE": "controlplane.settings.test"}
        with patch.dict(os.environ, {**backing.environ, **settings}):  # until they are gone
            django.setup()
            yield
    finally:
        backing.stop()
        shutil.rmtree(scratch, ignore_errors=True)
        os.close(lock)
