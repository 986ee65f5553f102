"""What a second wall behind `tenants.access` would cost: PostgreSQL's row-level security on all
that has an `access_path`, against the same pages without it (ADR 0117).

Each page is read by turns without and with it, by a member of one tenant and by an operator of the
fleet. With it a request first tells the database what its reader reaches, and acts as a role that
the policies bind; that is counted.
"""

import time
from collections.abc import Iterator
from statistics import median

from django.apps import apps
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from tenants import access
from tenants.models import Project, User
from tests.bench.report import Figures

TURNS = 11
LISTS = ("home", "workload-list", "quota-list", "tenant-list", "request-list", "spend",
         "budget-list", "reservation-list")  # fmt: skip
API = ("/api/v1/workloads?limit=50", "/api/v1/quotas?limit=50", "/api/v1/projects?limit=50")

_ROLE = """
CREATE ROLE berth_bound;
GRANT USAGE ON SCHEMA public TO berth_bound;
GRANT ALL ON ALL TABLES IN SCHEMA public TO berth_bound;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO berth_bound;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO berth_bound;
GRANT EXECUTE ON FUNCTION pg_control_checkpoint() TO berth_bound;
"""
_REACHED = "(SELECT string_to_array(current_setting('berth.projects', true), ',')::uuid[])::uuid[]"
_POLICY = """
CREATE POLICY reach ON {table}
USING ((SELECT current_setting('berth.reach', true) = 'fleet') OR {bound});
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
"""
_BIND = """
SELECT set_config('role', 'berth_bound', false), set_config('berth.reach', %s, false),
       set_config('berth.projects', %s, false)
"""


def take(figures: Figures, *people: User) -> None:
    """Builds the wall, which stays."""
    with connection.cursor() as cursor:
        cursor.execute(_ROLE)
        for table, bound in _bounds():
            cursor.execute(_POLICY.format(table=table, bound=bound))
    for user in people:
        client = Client(HTTP_HOST="localhost")
        client.force_login(user)
        for url in (*map(reverse, LISTS), *API):
            bare, walled = _by_turns(client, user, url)
            page = url.partition("?")[0].strip("/").replace("/", "_").replace("-", "_") or "home"
            figures.add(f"wall_{user.username}_{page}_bare_ms", bare * 1000, "ms")
            figures.add(f"wall_{user.username}_{page}_times", walled / bare, "x", at_most=1.1)


def _bounds() -> Iterator[tuple[str, str]]:
    """Tables, and when a row of each is reached: by its project, or as the row that it hangs on
    is, which has a policy of its own."""
    for model in apps.get_models():
        path = getattr(model, "access_path", None)
        if path:
            yield model._meta.db_table, _bound(model, path)


def _bound(model: type[Model], path: str) -> str:
    table = model._meta.db_table
    head, _, rest = path.partition("__")
    link = model._meta.get_field(head)
    if link.related_model is Project and not rest:
        return f"{table}.{head}_id = ANY ({_REACHED})"
    assert link.related_model
    above = link.related_model._meta.db_table
    return f"EXISTS (SELECT FROM {above} above WHERE above.id = {table}.{head}_id)"


def _by_turns(client: Client, user: User, url: str) -> tuple[float, float]:
    """Medians, in seconds."""
    took: dict[bool, list[float]] = {False: [], True: []}
    for nth in range(2 * TURNS + 2):
        walled = bool((nth // 2 + nth) % 2)
        begun = time.perf_counter()
        if walled:
            _bind(user)
        status = client.get(url).status_code
        if walled:
            with connection.cursor() as cursor:
                cursor.execute("RESET ROLE")
        if nth > 1:  # what a process reads once is not counted
            took[walled].append(time.perf_counter() - begun)
        assert status == 200, url
    return median(took[False]), median(took[True])


def _bind(user: User) -> None:
    actor = access.actor_for(user=user)
    everywhere = bool(actor.fleet_roles)
    reached = () if everywhere else _projects(actor)
    with connection.cursor() as cursor:
        cursor.execute(_BIND, ["fleet" if everywhere else "some", ",".join(map(str, reached))])


def _projects(actor: access.Actor) -> Iterator[object]:
    seen = Project.objects.filter(access.visible_projects(actor))
    return iter(seen.values_list("id", flat=True))
