"""The processes of the demo: one table, in order of their start.

What must not live here: starting them.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from clusters.sealing import PrivateKey
from controlplane.demo import access
from controlplane.demo.folder import Folder
from controlplane.demo.ports import HOST

_PYTHON = (sys.executable,)
_MANAGE = (*_PYTHON, "manage.py")
_CELERY = (*_PYTHON, "-m", "celery", "-A", "controlplane", "-q")
# Each worker is alone: what it would learn from others costs a second at the start.
_WORKER = ("--without-gossip", "--without-mingle", "-l", "WARNING")
# Said as root, where the demo is as private as for anyone; a real installation still hears it.
_NO_ROOT_WARNING = {"PYTHONWARNINGS": "ignore:You're running the worker with superuser"}


@dataclass(frozen=True, slots=True)
class Service:
    """One child. It is ready when GET `health` on `port` answers 200; "" means once started."""

    name: str
    command: tuple[str, ...]
    port: int = 0
    health: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A simulated cluster: its layout, where it listens, the token it asks for."""

    name: str
    layout: str
    port: int
    token: str

    @property
    def server(self) -> str:
        return f"http://{HOST}:{self.port}"


@dataclass(frozen=True, slots=True)
class Place:
    """What differs between two demos on one machine. `key` opens how clusters are reached, and is
    another at each start."""

    folder: Folder
    port: int
    clusters: tuple[Cluster, ...]
    key: PrivateKey = field(default_factory=PrivateKey.fresh)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/"


@dataclass(frozen=True, slots=True)
class Table:
    """`bootstrap` runs to its end while `first` starts; the `rest` follows in its order.

    A service with a health check has to answer before the next is started: what comes after the
    web pages must not compete with them for the processor.
    """

    first: tuple[Service, ...]
    bootstrap: Service
    rest: tuple[Service, ...]


CLUSTERS = (("north", "demo-north"), ("south", "demo-south"))  # name, layout


def table(place: Place) -> Table:
    """Everything that makes up Berth, apart from PostgreSQL and Valkey, and people at work."""
    activity = Service("activity", (*_MANAGE, "demo_activity"))
    idle = idle_table(place)
    return replace(idle, rest=(*idle.rest, activity))


def idle_table(place: Place) -> Table:
    """The same with nobody at work."""
    return Table(
        first=tuple(_simulator(place, cluster) for cluster in place.clusters),
        bootstrap=Service("bootstrap", (*_PYTHON, "-m", "controlplane.demo.bootstrap")),
        rest=(
            _worker("schedule", processes=1),
            _web(place),
            opening(_worker("dispatch", processes=2), place),
            opening(Service("watcher", (*_MANAGE, "watch_clusters")), place),
            _worker("periodic", processes=1),
            Service("beat", (*_CELERY, "beat", "-l", "WARNING", "-s", str(place.folder.beat))),
        ),
    )


def opening(service: Service, place: Place) -> Service:
    """One that may connect to clusters."""
    return replace(service, environ={**service.environ, "BERTH_OPEN_KEYS": place.key.text})


def reaching(table: Table, place: Place) -> Table:
    """The same whose bootstrap is told how clusters are reached, to have it stored."""
    told = {each.name: {"server": each.server, "token": each.token} for each in place.clusters}
    bootstrap = table.bootstrap
    environ = {**bootstrap.environ, access.TOLD: json.dumps(told)}
    return replace(table, bootstrap=replace(bootstrap, environ=environ))


def _simulator(place: Place, cluster: Cluster) -> Service:
    return Service(
        cluster.name,
        (
            *_PYTHON, "-m", "clusters.simulator", "--name", cluster.name,
            "--port", str(cluster.port), "--layout", cluster.layout,
            "--state", str(place.folder.simulator_state(cluster.name)),
        ),
        environ={"BERTH_SIMULATOR_TOKEN": cluster.token},
    )  # fmt: skip


def _web(place: Place) -> Service:
    return Service(
        "web",
        (
            *_PYTHON, "-m", "uvicorn", "controlplane.asgi:application", "--host", HOST,
            "--port", str(place.port), "--lifespan", "off", "--timeout-graceful-shutdown", "3",
            "--log-level", "warning", "--no-access-log",
        ),
        port=place.port,
        health="/healthz",
    )  # fmt: skip


def _worker(queue: str, *, processes: int) -> Service:
    return Service(
        queue,
        (*_CELERY, "worker", "-Q", queue, "-c", str(processes), "-n", f"{queue}@berth", *_WORKER),
        environ=_NO_ROOT_WARNING,
    )
