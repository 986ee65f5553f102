"""Reading the gates that stand before a project's work, and who may be the owner of one."""

from django.db.models import QuerySet

from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, StandingGate, User


def standing(*, actor: Actor, project: Project) -> QuerySet[StandingGate]:
    """Those of the project, with their owners; order them by id. Raises NotFound."""
    access.authorize(actor, Action.VIEW, project=project)
    return of_project(project)


def of_project(project: Project) -> QuerySet[StandingGate]:
    return StandingGate.objects.filter(project=project).select_related("owner")


def owner(*, username: str, project: Project) -> User | None:
    """Who is called so, if they see the project: nobody decides about what they may not see, and
    no service account decides."""
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None or user.is_service:
        return None
    sees = access.allowed(access.actor_for(user=user), Action.VIEW, project=project)
    return user if sees else None


def no_owner(username: str, project: Project) -> str:
    """What is told where there is none."""
    return f"{project.name} has nobody called {username!r}: the owner of a gate has a role in it."
