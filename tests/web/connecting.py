"""What tests of a cluster's connection on its pages share."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from clusters.models import Cluster
from tests import factories
from tests.conftest import Cast
from tests.simulation import simulator
from tests.web.conftest import Browse

__all__ = ["simulator"]

type Answer = Any  # of the test client

KUBECONFIGS = Path(__file__).parents[1] / "clusters/kubeconfigs"
HOSTILE = sorted((KUBECONFIGS / "hostile").glob("*.yaml"))
SECRET = "canary-token-0123456789"
SERVER = "https://north.example.test:6443"
REGISTER = reverse("cluster-register")


@pytest.fixture
def oz(browse: Browse, cast: Cast) -> Client:
    return browse(cast.oz)


@pytest.fixture
def north(db: None) -> Cluster:
    return factories.cluster("north", server=SERVER)


def url(step: str, name: str = "north") -> str:
    return reverse(step, args=[name])


def text(answer: Answer) -> str:
    return " ".join(answer.content.decode().split())


def errors(answer: Answer) -> dict[str, list[str]]:
    found: dict[str, list[str]] = answer.context["form"].errors
    return found
