"""The Celery app: queues by purpose and the static beat schedule. No task bodies here."""

import os

from celery import Celery, Task
from celery.signals import task_postrun, worker_init
from kombu import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings.dev")

from django.conf import settings  # the environment names the settings first
from django.db import close_old_connections

from controlplane.kernel import hints
from scheduler.core.compiled import MODULES, compiled

app = Celery("berth")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["scheduler", "tenants"])

app.conf.task_queues = [Queue("schedule"), Queue("dispatch"), Queue("periodic")]
app.conf.task_routes = {
    hints.CYCLE: {"queue": "schedule"},
    hints.DISPATCH: {"queue": "dispatch"},
    hints.DISPATCH_CLUSTER: {"queue": "dispatch"},
    hints.INSPECT_CLUSTER: {"queue": "dispatch"},  # where the private keys are
    hints.MEASURE_CLUSTER: {"queue": "dispatch"},  # as above
    hints.PROBE_CLUSTER: {"queue": "dispatch"},
    hints.PROBE_EXPOSURE: {"queue": "dispatch"},
    hints.RECUT_CLUSTER: {"queue": "dispatch"},  # as above
    hints.NODES_CLUSTER: {"queue": "dispatch"},  # as above
    hints.CHANNELS: {"queue": "dispatch"},  # as above
    hints.MAIL: {"queue": "dispatch"},  # who does not answer holds up nothing that is periodic
    "scheduler.*": {"queue": "periodic"},
    "tenants.*": {"queue": "periodic"},
}
# reliability 4.5: one visibility time-out, longer than the hard limit, in both places.
app.conf.visibility_timeout = 120


def _tick(task: str, every_s: float) -> dict[str, object]:
    """A periodic task whose missed runs expire instead of piling up."""
    return {"task": task, "schedule": every_s, "options": {"expires": max(every_s, 1)}}


app.conf.beat_schedule = {
    "cycle": _tick(hints.CYCLE, settings.BERTH_CYCLE_S),
    "dispatch": _tick(hints.DISPATCH, 2),
    "meter": _tick("scheduler.meter", settings.BERTH_METER_S),
    "forecast": _tick("scheduler.forecast", settings.BERTH_FORECAST_S),
    "check invariants": _tick("scheduler.check_invariants", settings.BERTH_INVARIANTS_S),
    "refresh wishes": _tick(hints.WISHES, 30),
    "measure use": _tick(hints.MEASURE, settings.BERTH_USE_S),
    "recut nodes": _tick(hints.RECUT, 10),
    "ask for nodes": _tick(hints.NODES, 10),
    "watch clusters": _tick("scheduler.check_clusters", 15),
    "watch probes": _tick("scheduler.check_probes", 15),
    "watch inspections": _tick("scheduler.check_inspections", 15),
    "watch starts": _tick("scheduler.check_starts", 30),
    "begin and end grants": _tick("tenants.begin_and_end_grants", 15),
    "escalate requests": _tick("tenants.escalate_requests", 60),
    "review quotas": _tick("tenants.review_quotas", 60),
    "follow quotas": _tick("scheduler.follow_quotas", 15),
    "tell of work": _tick("scheduler.tell", 30),
    "send mail": _tick(hints.MAIL, 10),
    "tell channels": _tick(hints.CHANNELS, 10),
}


@worker_init.connect
def load_planner(sender: object, **kwargs: object) -> None:
    """Before processes are forked, so that no first cycle waits for compiled code."""
    if "schedule" in app.amqp.queues.consume_from:
        for module in MODULES:
            compiled(module)


@task_postrun.connect
def give_back_connection(sender: "Task[..., object]", **kwargs: object) -> None:
    """To the pool, as after a web request; the next task gets it back if it still answers."""
    if not sender.request.is_eager:
        close_old_connections()
