"""Hints: a Celery task sent by name once the transaction commits. Best effort: beat is the
guarantee.

A hint that is still waiting in its queue is not sent again, so a burst of submits costs one cycle.
"""

import logging
from functools import cache

import redis
from celery import current_app
from django.conf import settings
from django.db import transaction

logger = logging.getLogger(__name__)

CYCLE = "scheduler.run_cycle"
DISPATCH = "scheduler.dispatch"
DISPATCH_CLUSTER = "scheduler.dispatch_cluster"
INSPECT_CLUSTER = "scheduler.inspect_pods"
MEASURE = "scheduler.measure_use"
MEASURE_CLUSTER = "scheduler.measure_cluster"
PROBE_CLUSTER = "scheduler.probe_cluster"
PROBE_EXPOSURE = "scheduler.probe_exposure"
RECUT = "scheduler.recut"
RECUT_CLUSTER = "scheduler.recut_cluster"
NODES = "scheduler.ask_for_nodes"
NODES_CLUSTER = "scheduler.ask_cluster_for_nodes"
WISHES = "scheduler.refresh_wishes"
MAIL = "tenants.send_mail"
CHANNELS = "tenants.tell_channels"
EXPIRES_S = 30
"""A hint that waited this long in its queue is dropped: the periodic run has come meanwhile."""

HARD_S: int = settings.CELERY_TASK_TIME_LIMIT + 5
"""Until when whoever began has ended, or was ended."""


@cache
def _redis() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)


def _key(task: str, arguments: dict[str, str]) -> str:
    return ":".join(["berth:hint", task, *arguments.values()])


def hint(task: str, **arguments: str) -> None:
    """Ask for `task` soon, after the current transaction commits. Never raises."""
    transaction.on_commit(lambda: send(task, **arguments))


def send(task: str, **arguments: str) -> None:
    """Send the hint now unless one is waiting. A broker that is down is logged, never raised."""
    try:
        # The key outlives a lost message by 5 s at most; beat covers that gap.
        if _redis().set(_key(task, arguments), 1, nx=True, ex=5):
            current_app.send_task(task, kwargs=arguments, retry=False, expires=EXPIRES_S)
    except Exception:  # any broker fault: the hint is only latency
        logger.warning("hint %s not sent; the periodic run will do the work", task, exc_info=True)


def taken(task: str, **arguments: str) -> None:
    """The task has begun: a hint from now on needs another run. Never raises."""
    try:
        _redis().delete(_key(task, arguments))
    except redis.RedisError:
        logger.warning("hint key of %s not cleared", task)


def begin(work: str, *, for_s: int) -> bool:
    """Whether the caller may begin this work: nobody has for the last `for_s`, or all have ended
    it. Never raises. It saves effort and guards nothing: without Redis everybody may."""
    try:
        return bool(_redis().set(f"berth:work:{work}", 1, nx=True, ex=for_s))
    except redis.RedisError:
        logger.warning("nobody knows whether %s is under way", work)
        return True


def end(work: str, *, quiet_s: int = 0) -> None:
    """The work is over, and nobody may begin it for another `quiet_s`. Never raises."""
    key = f"berth:work:{work}"
    try:
        if quiet_s:
            _redis().set(key, 1, ex=quiet_s)
        else:
            _redis().delete(key)
    except redis.RedisError:
        logger.warning("the end of %s is not noted", work)
