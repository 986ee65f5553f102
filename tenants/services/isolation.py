"""Saying how far a project's work has to be kept from its neighbours on shared GPUs. What it gives
up is its own, so that its owners may."""

from datetime import datetime

from clusters.models import Isolation
from controlplane.kernel.errors import Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project
from tenants.services import columns


def set_for_project(*, actor: Actor, project: Project, least: Isolation, at: datetime) -> Project:
    """From the next cycle on nothing of it starts on shares that isolate less; what runs on such
    goes on.

    Raises NotFound or NotAllowed for the project, Invalid for no such isolation.
    """
    access.authorize(actor, Action.MANAGE_QUEUE, project=project)
    if least not in Isolation:
        raise Invalid(
            f"One of {', '.join(Isolation.values)} is wanted.", pointer="/least_isolation"
        )
    return columns.say(
        project,
        action="project.least-isolation",
        values={"least_isolation": least.value},
        actor=actor,
        at=at,
    )
