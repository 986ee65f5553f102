"""The one door: what each actor sees, and in which projects they may do what."""

import pytest

from controlplane.kernel.errors import NotFound
from scheduler.models import Workload
from tenants import access
from tenants.access import Action, Actor, actor_for
from tenants.models import Project, Role, Scope, Tenant, User
from tests import factories
from tests.conftest import Cast


def names(actor: Actor, action: Action = Action.VIEW) -> set[str]:
    rows = access.for_actor(Project.objects.all(), actor=actor, action=action)
    return {row.name for row in rows}


def by_token(user: User, *scopes: Scope, project: Project | None = None) -> Actor:
    return actor_for(user=user, token=factories.token(user, *scopes, project=project))


def test_a_role_counts_at_its_place_and_below(cast: Cast) -> None:
    assert names(actor_for(user=cast.ada)) == {"Detection", "Segmentation"}
    assert names(actor_for(user=cast.ben)) == {"Detection"}
    assert names(actor_for(user=cast.cleo)) == {"Dialogue"}
    assert names(actor_for(user=cast.oz)) == {"Detection", "Segmentation", "Dialogue"}


def test_a_role_of_an_organisation_counts_in_its_departments(cast: Cast) -> None:
    department = factories.tenant("Robots", parent=cast.vision)
    factories.project(department, "Arms")
    assert "Arms" in names(actor_for(user=cast.ada))
    assert "Arms" not in names(actor_for(user=cast.ben))


@pytest.mark.parametrize(
    ("name", "action", "expected"),
    [
        ("ada", Action.SUBMIT, {"Detection", "Segmentation"}),
        ("ben", Action.SUBMIT, {"Detection"}),
        ("vik", Action.SUBMIT, set()),
        ("vik", Action.VIEW_SPEND, set()),
        ("oz", Action.SUBMIT, set()),
        ("oz", Action.EDIT_QUOTA, {"Detection", "Segmentation", "Dialogue"}),
        ("pia", Action.DECIDE_REQUEST, {"Detection", "Segmentation", "Dialogue"}),
    ],
)
def test_rows_are_narrowed_to_what_an_action_is_permitted_in(
    cast: Cast, name: str, action: Action, expected: set[str]
) -> None:
    assert names(actor_for(user=getattr(cast, name)), action) == expected


def test_filtering_and_asking_agree(cast: Cast) -> None:
    """`for_actor(action=)` and `allowed` are two ways to say the same table."""
    department = factories.tenant("Robots", parent=cast.vision)
    factories.project(department, "Arms")
    factories.member(cast.ben, Role.APPROVER, at=cast.speech)
    people = [cast.ada, cast.ben, cast.cleo, cast.oz, cast.pia, cast.vik]
    actors = [actor_for(user=user) for user in people]
    for user in people:
        for scope in Scope:
            actors += [by_token(user, scope), by_token(user, scope, project=cast.detection)]
    for actor in actors:
        for action in Action:
            asked = {
                project.name
                for project in Project.objects.all()
                if access.allowed(actor, action, project=project)
            }
            assert names(actor, action) == asked, (actor.name, actor.token, action)


def test_a_token_is_no_stronger_than_its_scopes_and_project(cast: Cast) -> None:
    assert names(by_token(cast.ada, Scope.READ), Action.SUBMIT) == set()
    assert names(by_token(cast.ada, Scope.SUBMIT), Action.SUBMIT) == {"Detection", "Segmentation"}
    narrow = by_token(cast.ada, Scope.SUBMIT, project=cast.detection)
    assert names(narrow) == {"Detection"}
    foreign = by_token(cast.cleo, Scope.SUBMIT, project=cast.detection)
    assert names(foreign) == set()
    for actor in (by_token(cast.pia, *Scope), by_token(cast.ada, *Scope)):
        assert names(actor, Action.DECIDE_REQUEST) == set()
        assert names(actor, Action.MANAGE_MEMBERS) == set()


def test_tenants_are_seen_from_below_and_above(cast: Cast) -> None:
    department = factories.tenant("Robots", parent=cast.vision)
    arms = factories.project(department, "Arms")
    factories.member(cast.cleo, Role.VIEWER, at=arms)

    def seen(actor: Actor) -> set[str]:
        return {tenant.name for tenant in access.tenants_for_actor(actor)}

    assert seen(actor_for(user=cast.cleo)) == {"Speech Lab", "Robots", "Vision Lab"}
    assert seen(actor_for(user=cast.ada)) == {"Vision Lab", "Robots"}
    factories.member(cast.vik, Role.VIEWER, at=factories.tenant("Drones", parent=cast.speech))
    assert seen(actor_for(user=cast.vik)) == {"Vision Lab", "Robots", "Drones", "Speech Lab"}
    assert seen(by_token(cast.ada, Scope.READ, project=cast.detection)) == {"Vision Lab"}


def test_an_unscoped_query_is_a_defect(cast: Cast) -> None:
    with pytest.raises(TypeError):
        access.for_actor(Tenant.objects.all(), actor=actor_for(user=cast.ada))


def test_rows_below_a_project_follow_it(cast: Cast) -> None:
    flavor = factories.flavor()
    row = factories.workload(cast.detection, cast.ben, [flavor])
    assert access.get_or_404(Workload.objects.all(), actor=actor_for(user=cast.vik), id=row.id)
    with pytest.raises(NotFound):
        access.get_or_404(Workload.objects.all(), actor=actor_for(user=cast.cleo), id=row.id)
