"""Attacks on the roles that groups have, and on those that came by them."""

from functools import partial
from typing import Any

from tenants.models import GroupRole, Member, Project, Role, Tenant, User
from tests.constraints.attack import Attack
from tests.constraints.moves import Statement, change, copy, update
from tests.constraints.rows import make


def _came_by_it(**columns: Any) -> Statement:  # Any: a column's value
    """Somebody is a viewer of a project by a group, with one thing wrong."""
    rule = make(GroupRole, role=Role.VIEWER, project=make(Project), made_by=make(User))
    member = make(Member, user=make(User), role=Role.VIEWER, project=rule.project, group_role=rule)
    return update(
        member, **{name: each() if callable(each) else each for name, each in columns.items()}
    )


def _of_who_made_it() -> Statement:
    rule = make(GroupRole, role=Role.VIEWER, tenant=make(Tenant))
    member = make(Member, user=rule.made_by, role=Role.VIEWER, tenant=rule.tenant)
    return update(member, group_role_id=rule.pk)


ATTACKS = (
    Attack(
        "group_role_of_one_scope",
        "a group's role is of a tenant and a project",
        copy(GroupRole, {"project": lambda: make(Project)}, tenant_id=lambda: make(Tenant).pk),
    ),
    Attack(
        "group_role_role_known",
        "a group's role is of nobody's making",
        copy(GroupRole, role="god"),
    ),
    *(
        Attack(
            "group_role_names_a_group", f"a role is of no {name}", copy(GroupRole, **{name: ""})
        )
        for name in ("group", "provider")
    ),
    Attack("group_role_once", "a group has a role of the fleet twice", copy(GroupRole)),
    Attack(
        "group_role_once",
        "a group has a project's role twice",
        copy(GroupRole, {"project": lambda: make(Project)}),
    ),
    Attack(
        "group_role_never_changed", "a role is another group's now", change(GroupRole, group="b")
    ),
    Attack(
        "member_as_its_group_role",
        "a group of viewers has an approver",
        partial(_came_by_it, role="approver"),
        behind=("member_giver_stays",),
    ),
    Attack(
        "member_as_its_group_role",
        "a group's role holds elsewhere",
        partial(_came_by_it, project_id=lambda: make(Project).pk),
        behind=("member_giver_stays",),
    ),
    Attack(
        "member_as_its_group_role",
        "a project's group has a role of the fleet",
        partial(_came_by_it, project_id=None),
        behind=("member_giver_stays",),
    ),
    Attack("member_as_its_group_role", "somebody gives themself a group's role", _of_who_made_it),
)
