"""What Celery is told, read from the app as its processes read it: a lost or late message costs a
tick and never more (reliability 4.5). What the broker is told is in tests/embedded."""

import os
import subprocess
import sys
from typing import Any

import pytest
from celery.signals import worker_init
from django.db import connection

from controlplane import celery
from controlplane.celery import app
from controlplane.kernel import hints
from scheduler import tasks
from scheduler.core.compiled import MODULES
from tenants import tasks as tenants_tasks

HARD_S, VISIBLE_S = 30, 120
TASKS = {
    hints.CYCLE: "schedule",
    hints.DISPATCH: "dispatch",
    hints.DISPATCH_CLUSTER: "dispatch",
    "scheduler.meter": "periodic",
    "scheduler.measure_use": "periodic",
    "scheduler.measure_cluster": "dispatch",  # where the credentials are
    "scheduler.probe_cluster": "dispatch",  # as well
    "scheduler.probe_exposure": "dispatch",  # as well
    "scheduler.check_probes": "periodic",
    "scheduler.inspect_pods": "dispatch",  # as well
    "scheduler.check_inspections": "periodic",
    hints.RECUT: "periodic",
    hints.RECUT_CLUSTER: "dispatch",  # as above
    hints.NODES: "periodic",
    hints.NODES_CLUSTER: "dispatch",  # as above
    "scheduler.forecast": "periodic",
    "scheduler.check_clusters": "periodic",
    "scheduler.check_starts": "periodic",
    "tenants.begin_and_end_grants": "periodic",
    "tenants.escalate_requests": "periodic",
    "tenants.review_quotas": "periodic",
    "scheduler.follow_quotas": "periodic",
    "scheduler.tell": "periodic",
    "tenants.send_mail": "dispatch",
    "tenants.tell_channels": "dispatch",  # as above
    "scheduler.check_invariants": "periodic",
    "scheduler.refresh_wishes": "periodic",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task_acks_late", True),  # a killed worker's task runs again
        ("worker_prefetch_multiplier", 1),  # a busy worker keeps nothing from an idle one
        ("task_ignore_result", True),
        ("result_backend", None),
        ("task_soft_time_limit", 20),
        ("task_time_limit", HARD_S),
        ("task_serializer", "json"),  # a pickle runs what its sender likes
        ("accept_content", ["json"]),
        ("enable_utc", True),
        ("timezone", "UTC"),
    ],
)
def test_the_app_is_told(name: str, value: object) -> None:
    assert getattr(app.conf, name) == value


def test_one_time_until_a_message_is_delivered_again_is_everywhere() -> None:
    """Two values would be taken for each other: the shortest one would repeat running tasks."""
    of_results = app.conf.result_backend_transport_options or {"visibility_timeout": VISIBLE_S}
    with app.connection_for_write() as connection:
        channel: Any = connection.default_channel  # Any: only Redis's has the time-out
        in_use = channel.visibility_timeout
    assert {
        "the broker's options": app.conf.broker_transport_options["visibility_timeout"],
        "the app": app.conf.visibility_timeout,
        "the results' options": of_results["visibility_timeout"],
        "a channel": in_use,
    } == dict.fromkeys(
        ("the broker's options", "the app", "the results' options", "a channel"), VISIBLE_S
    )
    assert VISIBLE_S > HARD_S


def test_the_queues_are_those_that_workers_serve() -> None:
    assert {queue.name for queue in app.conf.task_queues} == set(TASKS.values())


@pytest.mark.parametrize(("task", "queue"), TASKS.items())
def test_a_task_is_routed_by_its_purpose(task: str, queue: str) -> None:
    assert app.amqp.router.route({}, task)["queue"].name == queue


def test_every_task_of_ours_is_in_the_table_and_has_the_common_limits() -> None:
    modules = (tasks, tenants_tasks)
    made = [each for of in modules for each in vars(of).values() if hasattr(each, "apply_async")]
    assert {task.name for task in made} == set(TASKS)
    for task in (app.tasks[name] for name in TASKS):
        assert (task.acks_late, task.ignore_result) == (True, True)
        assert (task.soft_time_limit, task.time_limit) == (20, HARD_S)


@pytest.mark.parametrize("name", sorted(app.conf.beat_schedule))
def test_a_tick_expires_before_two_more_are_due(name: str) -> None:
    entry: dict[str, Any] = app.conf.beat_schedule[name]  # Any: as beat reads it
    assert entry["task"] in TASKS
    assert entry["options"] == {"expires": max(entry["schedule"], 1)}


def test_each_periodic_task_has_its_tick() -> None:
    ticked = {entry["task"] for entry in app.conf.beat_schedule.values()}
    # Others send these, one for each cluster, or for each that is asked for.
    sent = {
        hints.DISPATCH_CLUSTER,
        hints.INSPECT_CLUSTER,
        hints.MEASURE_CLUSTER,
        hints.PROBE_CLUSTER,
        hints.PROBE_EXPOSURE,
        hints.RECUT_CLUSTER,
        hints.NODES_CLUSTER,
    }
    assert ticked == set(TASKS) - sent


@pytest.mark.parametrize(
    ("queue", "loads"), [("schedule", True), ("dispatch", False), ("periodic", False)]
)
def test_only_the_worker_of_the_cycles_loads_compiled_code(
    queue: str, loads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(celery, "compiled", loaded.append)
    monkeypatch.setattr(app.amqp.queues, "_consume_from", {queue: app.amqp.queues[queue]})
    worker_init.send(sender=None)
    assert loaded == [*MODULES] * loads


# As in a process of a worker, with the pool that tests do without.
_TASKS = """
from types import SimpleNamespace
import django
from celery.app.trace import build_tracer
from celery.fixups.django import DjangoWorkerFixup
from controlplane.celery import app
from django.db import connection

@app.task
def session():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        print(cursor.fetchone()[0])

django.setup()
around = DjangoWorkerFixup(app)
around.worker = SimpleNamespace(pool_cls="prefork")
around.install()
for id in "123":
    build_tracer(session.name, session, app=app)(id, (), {}, {"is_eager": False})
    assert connection.connection is None, "it is not given back"
"""


@pytest.mark.django_db
def test_a_task_goes_on_in_the_session_of_one_before_and_leaves_it_to_the_pool() -> None:
    of = connection.settings_dict
    url = f"postgresql://{of['USER']}@/{of['NAME']}?host={of['HOST']}"
    environ = {
        "DJANGO_SETTINGS_MODULE": "controlplane.settings.dev",
        "DATABASE_URL": url,
    }
    done = subprocess.run(
        [sys.executable, "-c", _TASKS],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    *before, last = done.stdout.split()
    assert last in before  # a pool may begin with two
