"""One control plane, one installation and one watch for all cells."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import DjangoDbBlocker

from tests.crash.children import Children
from tests.faults.stand import Stand, short_times, standing
from tests.kube.control_plane import ControlPlane
from tests.kube.fixtures import control_plane
from tests.kube.work import catches, work_in

__all__ = ["control_plane"]

A100, H100 = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"


@pytest.fixture(scope="package")
def furnished(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Two nodes of H100s and two of A100s in slices, in a cluster that catches."""
    names = [f"fault-{number}" for number in range(4)]
    for name in names:
        model, gpus, mig = (H100, 8, {}) if name in names[:2] else (A100, 0, {"3g.40gb": 4})
        control_plane.add_gpu_node(
            name,
            model=model,
            gpus=gpus,
            memory_mib=81_559,
            cpu_milli=96_000,
            ram_mib=1_048_576,
            mig=mig,
        )
    with catches(control_plane):
        yield control_plane
    for name in names:
        control_plane.admin.delete(f"/api/v1/nodes/{name}")


@pytest.fixture(scope="package")
def children(django_db_setup: None) -> Iterator[Children]:
    """Other processes, which no Redis keeps from doing what is being done."""
    database = str(connection.settings_dict["NAME"])
    children = Children.start(database=database, REDIS_URL="redis://127.0.0.1:1")
    yield children
    children.stop()


@pytest.fixture(scope="package")
def stand(
    furnished: ControlPlane,
    children: Children,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stand]:
    folder = tmp_path_factory.mktemp("faults")
    with django_db_blocker.unblock():
        with short_times(), standing(furnished, children, folder) as stand:
            space = {"metadata": {"name": stand.vision.namespace}}
            furnished.admin.create("/api/v1/namespaces", space)
            work_in(furnished, stand.vision.namespace)  # until its pods are caught
            yield stand
        call_command("flush", verbosity=0, interactive=False)


@pytest.fixture
def transactional_db(stand: Stand) -> None:
    """In this package the tables are emptied once all cells have been played, and not after each:
    what one leaves behind is the next one's to stumble over."""
