"""Attacks on who has which role, and on how people get in."""

from tenants.models import Member, Project, Tenant, Token, User, UserSession
from tests.constraints.attack import Attack
from tests.constraints.moves import Sql, Statement, change, copy, update
from tests.constraints.rows import NOON, make


def _second_person() -> object:
    return make(User).pk


def _given() -> Member:
    """A role that somebody gave."""
    giver = make(User)
    return make(Member, granted_by=giver, granted_at=NOON, givers=[giver.pk])


def _given_never() -> Statement:
    return update(_given(), granted_at=None)


def _given_by_nobody() -> Statement:
    return update(_given(), granted_by_id=None, granted_at=None, givers=[])


ATTACKS = (
    Attack(
        "member_of_one_scope",
        "a role is in a tenant and a project at once",
        change(Member, {"project": lambda: make(Project)}, tenant_id=lambda: make(Tenant).pk),
        behind=("member_giver_stays",),
    ),
    Attack(
        "member_role_known",
        "a role is of nobody's making",
        change(Member, role="god"),
        behind=("member_giver_stays",),
    ),
    Attack(
        "member_givers_whole",
        "who gave it is in no list of givers",
        change(Member, granted_by_id=_second_person, granted_at=NOON),
        behind=("member_giver_stays",),
    ),
    Attack(
        "member_givers_whole",
        "it came through somebody, and nobody gave it",
        change(Member, givers=lambda: [_second_person()]),
        behind=("member_giver_stays",),
    ),
    Attack(
        "member_givers_whole",
        "it came through others than who gave it",
        change(
            Member,
            granted_by_id=_second_person,
            granted_at=NOON,
            givers=lambda: [_second_person()],
        ),
        behind=("member_giver_stays",),
    ),
    Attack(
        "member_givers_whole", "it was given never", _given_never, behind=("member_giver_stays",)
    ),
    Attack("member_giver_stays", "nobody gave it after all", _given_by_nobody),
    Attack("member_giver_stays", "it is another's", change(Member, user_id=_second_person)),
    Attack("member_role_once", "a fleet-wide role is held twice", copy(Member)),
    Attack(
        "member_role_once",
        "a project's role is held twice",
        copy(Member, {"project": lambda: make(Project)}),
    ),
    Attack("token_scopes_known", "a token may do anything", change(Token, scopes=["root"])),
    Attack("token_scopes_known", "a token has an unnamed scope", change(Token, scopes=[None])),
    Attack("token_scopes_known", "a token is for nothing", change(Token, scopes=Sql("'{}'"))),
    Attack(
        "token_expires_later",
        "a token ends before it begins",
        change(Token, expires_at=Sql("created_at")),
    ),
    Attack(
        "token_revoked_if_by_somebody",
        "somebody revoked what lives",
        change(Token, revoked_by="ben"),
    ),
    Attack(
        "user_one_break_glass",
        "there are two break-glass accounts",
        copy(User, {"username": "first", "is_break_glass": True}, username="second"),
    ),
    Attack(
        "user_mailed_of_own_work",
        "somebody is mailed of what their role is told of",
        change(User, mailed_of=["request.opened"]),
    ),
    Attack(
        "user_who_left_is_not_active",
        "somebody who left signs in",
        change(User, left_at=NOON),
    ),
    Attack("tenants_usersession_session_id_key", "a session is two people's", copy(UserSession)),
    Attack(
        "user_session_seen_since_it_began",
        "a session was seen before it began",
        change(UserSession, seen_at=Sql("began_at - interval '1 second'")),
    ),
    Attack("tenants_token_digest_key", "one secret opens two tokens", copy(Token)),
    Attack(
        "tenants_user_username_key",
        "two people share a name",
        copy(User),
        behind=("user_name_reads_once",),
    ),
    *(
        Attack("user_name_ascii", f"a username has {what}", change(User, username=name))
        for what, name in (
            ("a Cyrillic letter", "b\u0435n"),
            ("a space", "b en"),
            ("a line break", Sql("E'ben\\n'")),
            ("nothing in it", ""),
        )
    ),
    *(
        Attack(
            "user_name_reads_once",
            f"{name} and {other} are two people",
            copy(User, {"username": name}, username=other),
        )
        for name, other in (
            ("ben", "Ben"),
            ("olli", "0l1I"),
            ("ben-2", "be_n2"),
            ("arno", "amo"),
            ("Or-n", "0M"),
        )
    ),
    Attack(
        "tenants_user_groups_user_id_group_id_ef9ea837_uniq",
        "a person is in a group twice",
        copy(User.groups.through),
    ),
    Attack(
        "tenants_user_user_permis_user_id_permission_id_e7cb44b9_uniq",
        "a person has a permission twice",
        copy(User.user_permissions.through),
    ),
)
