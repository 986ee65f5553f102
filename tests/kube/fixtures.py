"""The control plane as pytest fixtures; a test folder imports what it needs into its conftest.

Under xdist one worker runs all tests that use them (tests/groups.py), with one control plane.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest

from tests.kube import binaries
from tests.kube.api import Json
from tests.kube.control_plane import ControlPlane
from tests.parts import KUBERNETES, in_ci, missing

CLAIMS = ("resource.k8s.io/v1", "resourceclaims")
"""Since Kubernetes 1.34."""
RESIZE = ("v1", "pods/resize")
"""Since Kubernetes 1.33."""

_serial = count(1)


class AddNode(Protocol):
    """Make one fake node under a name of its own and return it."""

    def __call__(self, *, gpus: int = 8, mig: dict[str, int] | None = None) -> Json: ...


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """One real control plane for the whole run."""
    with ControlPlane(_binaries()) as kube:
        yield kube


def needs(kube: ControlPlane, group_version: str, resource: str) -> None:
    """The test is left out where the oldest Kubernetes has no such objects; the newest has all."""
    if not kube.serves(group_version, resource):
        assert binaries.is_oldest(), f"{resource} of {group_version} are not served"
        pytest.skip(f"this Kubernetes has no {resource} of {group_version}")


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own; what runs in it ends with the test."""
    name = control_plane.add_namespace()
    yield name
    control_plane.admin.delete(f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")
    control_plane.admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def add_node(control_plane: ControlPlane) -> Iterator[AddNode]:
    """A maker of H100 nodes, which are taken away after the test."""
    names: list[str] = []

    def add(*, gpus: int = 8, mig: dict[str, int] | None = None) -> Json:
        names.append(f"gpu-{next(_serial)}")
        return control_plane.add_gpu_node(
            names[-1],
            model="NVIDIA H100 80GB HBM3",
            gpus=gpus,
            memory_mib=81_559,
            cpu_milli=96_000,
            ram_mib=1_048_576,
            mig=mig,
        )

    yield add
    for name in names:
        control_plane.admin.delete(f"/api/v1/nodes/{name}")


def _binaries() -> Path:
    try:
        return binaries.build() if in_ci() else binaries.find()
    except binaries.NotBuilt as error:
        need = str(error)
    missing(KUBERNETES, need)
