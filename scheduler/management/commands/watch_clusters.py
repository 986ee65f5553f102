"""`manage.py watch_clusters`: follows every registered cluster until it is told to stop.

Of several such processes one follows a cluster, and the others stand by until that is gone.
"""

import logging
import signal
import threading
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand
from django.db import Error as DatabaseFailed
from django.db import OperationalError, close_old_connections, connection
from django.db.models.functions import Coalesce

from clusters import registry
from clusters.credential import BadCredential
from clusters.models import Cluster
from clusters.services import clusters
from controlplane.kernel import clock
from controlplane.kernel.session_locks import SessionLocks
from scheduler.loop.watching.watch import Watch

logger = logging.getLogger(__name__)

LOOK_S = 2.0
"""How soon a newly registered cluster is followed, and one by its new credential."""
ENDS_S = 2.0
"""How long a stop is waited for: what a thread does then is done or undone by itself."""
LONGEST_PAUSE_S = 30.0
"""Before a watch that broke begins anew, however often it did."""


class Command(BaseCommand):
    help = "Follow every registered cluster: nodes, pods and how they change."

    def handle(self, **_: Any) -> None:  # Any: Django's options
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        follow_all(stop)


@dataclass(slots=True)
class _Followed:
    """A thread that follows a cluster by one version of its credential, 0 without one."""

    version: int
    stop: threading.Event
    thread: threading.Thread

    def is_of(self, version: int) -> bool:
        """It goes on, by that one."""
        return self.version == version and not self.stop.is_set()


def follow_all(stop: threading.Event) -> None:
    """Follow every cluster that no other process does, and anew once its credential is another,
    until `stop` is set."""
    followed: dict[UUID, _Followed] = {}
    with SessionLocks() as locks:
        while not stop.is_set():
            if locks.lost():
                logger.error("the database hung up, and others may follow from now on")
                _end(followed.values())
            try:
                _follow_new(followed, locks)
            except OperationalError:
                logger.exception("the database does not answer")
                connection.close()
            close_old_connections()
            stop.wait(LOOK_S)
        _end(followed.values())
        for each in followed.values():  # before another process begins
            each.thread.join(ENDS_S)


def _follow_new(followed: dict[UUID, _Followed], locks: SessionLocks) -> None:
    version = Coalesce("credential__version", 0)
    for cluster in Cluster.objects.annotate(credential_version=version):
        before = followed.get(cluster.id)
        if before is not None and before.is_of(cluster.credential_version):
            continue
        if locks.take(f"watch {cluster.id}"):
            followed[cluster.id] = _begin(cluster, cluster.credential_version, after=before)


def _end(followed: Iterable[_Followed]) -> None:
    for each in followed:
        each.stop.set()


def _begin(cluster: Cluster, version: int, *, after: _Followed | None) -> _Followed:
    """Two never write of one cluster at once: the first ends before the second begins."""
    stop = threading.Event()

    def run() -> None:
        if after is not None:
            after.stop.set()
            after.thread.join()
        follow(cluster, stop)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return _Followed(version, stop, thread)


def follow(cluster: Cluster, stop: threading.Event) -> None:
    """Watch one cluster until told to stop, beginning anew with a growing pause when the watch
    breaks."""
    pause_s = 0.25
    while not stop.is_set():
        begun = time.monotonic()
        try:
            with closing(registry.connect(cluster.name)) as port:
                Watch(cluster=cluster, port=port, at=clock.now, stop=stop).run()
        except Exception as error:  # the edge of a thread; the cluster's page shows it
            waits = isinstance(error, BadCredential)  # for somebody to store one that opens
            logger.warning("watch of %s broke: %s", cluster.name, error, exc_info=not waits)
            _note(cluster, error)
        finally:
            connection.close()
        lasted = time.monotonic() - begun
        pause_s = 0.5 if lasted > 60 else min(pause_s * 2, LONGEST_PAUSE_S)
        stop.wait(pause_s)


def _note(cluster: Cluster, error: Exception) -> None:
    try:
        clusters.failed(cluster=cluster, error=error)
    except DatabaseFailed:  # whatever of it, the thread goes on
        logger.exception("the failure of %s could not be stored", cluster.name)
