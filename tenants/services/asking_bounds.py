"""How often one may ask for quota, as each time mails others, also where it is withdrawn at once;
and how many requests may wait for an answer.

Counted in PostgreSQL, by the requests that are there, so that it holds over all processes and a
request that is answered again counts once.
"""

from datetime import datetime, timedelta

from controlplane.kernel.errors import Invalid
from controlplane.kernel.throttle import TooOften
from tenants.access import Actor
from tenants.models import Project, QuotaRequest, User

HOUR = timedelta(hours=1)
MOST = 30
"""Requests of one person in an hour, in all projects."""
MOST_OPEN = 50
"""Undecided requests that a project may have."""


def check(*, actor: Actor, project: Project, at: datetime, count: int = 1) -> None:
    """Whether the actor may open so many more in the project; in the caller's transaction, which
    keeps it so. Raises Invalid where the project can't have them, TooOften where the actor may not
    yet."""
    Project.objects.select_for_update(no_key=True).get(id=project.id)  # one at a time
    User.objects.select_for_update(no_key=True).get(id=actor.user.id)
    waiting = QuotaRequest.objects.filter(project=project, decision="").count()
    if waiting + count > MOST_OPEN:
        raise Invalid(f"{project.name} has {waiting} undecided requests, of at most {MOST_OPEN}.")
    recent = QuotaRequest.objects.filter(requested_by=actor.user, requested_at__gt=at - HOUR)
    moments = recent.order_by("-requested_at").values_list("requested_at", flat=True)
    left = MOST - count
    if leaves := moments[left : left + 1].first():
        raise TooOften(most=MOST, window=HOUR, wait=leaves + HOUR - at)
