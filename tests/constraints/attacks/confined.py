"""Attacks on what became of confining projects."""

from scheduler.models import Confinement
from tests.constraints.attack import Attack
from tests.constraints.moves import copy

ATTACKS = (
    Attack(
        "confinement_once_a_cluster_and_project",
        "a project is confined twice in a cluster",
        copy(Confinement),
    ),
)
