"""Making projects: by owners, with namespaces that the server makes."""

from typing import Any

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from tenants.access import actor_for
from tenants.models import Project, Role, Tenant, User
from tenants.services import projects
from tests import factories
from tests.conftest import Cast


def create(
    cast: Cast,
    slug: str = "new",
    name: str = "New",
    *,
    tenant: Tenant | None = None,
    by: User | None = None,
    weight: int = 1,
) -> Project:
    """By ada in Vision Lab, unless said otherwise."""
    return projects.create(
        actor=actor_for(user=by or cast.ada),
        tenant=tenant or cast.vision,
        name=name,
        slug=slug,
        weight=weight,
        at=factories.AT,
    )


def test_an_owner_makes_a_project_with_a_namespace_of_ours(cast: Cast) -> None:
    made = create(cast, name=" New ")
    assert (made.name, made.namespace) == ("New", "berth-vision-lab-new")
    assert AuditEvent.objects.get().after["namespace"] == made.namespace


def test_names_that_meet_get_a_number(cast: Cast) -> None:
    """vision-lab + x-y and vision-lab-x + y would share a namespace."""
    other = factories.tenant("Vision Lab X")
    factories.project(other, "Y")
    assert create(cast, "x-y").namespace == "berth-vision-lab-x-y-2"


def test_a_long_name_is_cut_and_stays_unique(cast: Cast) -> None:
    long = factories.tenant("L", slug="a" * 40)
    factories.member(cast.ada, Role.OWNER, at=long)
    spaces = [
        create(cast, "b" * 38 + end, f"Part {end}", tenant=long).namespace for end in ("1", "2")
    ]
    assert len(set(spaces)) == 2
    assert all(len(space) <= 63 and not space.endswith("-") for space in spaces)


def test_a_slug_stands_once_in_a_tenant(cast: Cast) -> None:
    with pytest.raises(Conflict, match="has a project detection already"):
        create(cast, "detection")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": ""}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"name": "a\0"}, "/name"),
        ({"name": "a\u202eb"}, "/name"),
        ({"slug": ""}, "/slug"),
        ({"slug": "Big"}, "/slug"),
        ({"slug": "-a"}, "/slug"),
        ({"slug": "a" * 41}, "/slug"),
        ({"weight": 0}, "/weight"),
        ({"weight": 1001}, "/weight"),
    ],
)
def test_it_refuses_what_is_no_name(cast: Cast, fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        create(cast, **fields)
    assert refused.value.pointer == pointer
    assert Project.objects.count() == 3


def test_only_owners_make_projects(cast: Cast) -> None:
    for user in (cast.ben, cast.vik, cast.oz, cast.pia):
        with pytest.raises(NotAllowed):
            create(cast, by=user)
    with pytest.raises(NotFound):
        create(cast, by=cast.cleo)
