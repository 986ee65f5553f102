"""The first tenant and the first person of an installation, who makes everybody else."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib.auth import password_validation as rules
from django.core.exceptions import ValidationError
from django.db import connection, transaction

from controlplane.audit import services as audit
from controlplane.kernel.errors import Conflict, Invalid
from tenants import naming
from tenants.models import Member, Role, Tenant, User
from tenants.services import places, users

ACTOR = "system:bootstrap"
ROLES = (Role.OWNER, Role.OPERATOR, Role.APPROVER)
_RULES = (
    rules.MinimumLengthValidator(min_length=12),
    rules.UserAttributeSimilarityValidator(),
    rules.CommonPasswordValidator(),
    rules.NumericPasswordValidator(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """An organisation and the username of its first person."""

    organisation: str
    slug: str
    username: str


def is_done(*, wanted: Beginning) -> bool:
    """Whether it was made before, by the same names.

    Raises Conflict when the fleet is owned already and this is not how that came about.
    """
    owners = set(
        Member.objects.filter(role=Role.OWNER, tenant=None, project=None).values_list(
            "user__username", flat=True
        )
    )
    if not owners:
        return False
    root = Tenant.objects.filter(slug=wanted.slug, name=wanted.organisation, parent=None)
    if wanted.username in owners and root.exists():
        return True
    raise Conflict("The fleet has an owner already, who makes tenants' members and roles.")


def bootstrap(*, wanted: Beginning, password: str, at: datetime) -> None:
    """Make the root tenant and a person who owns, operates and approves for the whole fleet.

    The person may also sign in to the back office, where accounts are made. `password` is theirs
    if the account is new. Again with the same names it changes nothing. Raises Invalid for a name
    or password that is none, Conflict as `is_done` and for a slug or username in use.
    """
    _check(wanted)
    with transaction.atomic():
        with connection.cursor() as cursor:  # one of these, or one grant, at a time
            cursor.execute("LOCK TABLE tenants_member IN SHARE ROW EXCLUSIVE MODE")
        if is_done(wanted=wanted):
            return
        if Tenant.objects.filter(slug=wanted.slug).exists():
            raise Conflict(f"There is a tenant {wanted.slug!r} already.", pointer="/slug")
        users.check_unlike(wanted.username)
        tenant = Tenant.objects.create(name=wanted.organisation, slug=wanted.slug, created_at=at)
        user = _user(wanted.username, password)
        made = [("tenant.create", "tenant", tenant.id, {"name": tenant.name, "slug": tenant.slug})]
        made.append(("user.create", "user", user.id, {"username": user.username}))
        for role in ROLES:
            member = Member.objects.create(user=user, role=role)
            made.append(
                ("member.grant", "member", member.id, {"user": str(user.id), "role": role.value})
            )
        _record(made, at)


def _check(wanted: Beginning) -> None:
    naming.checked(wanted.organisation, pointer="/organisation")
    places.check_slug(wanted.slug)
    users.check_name(wanted.username)


def _user(username: str, password: str) -> User:
    user = User(username=username, is_staff=True, is_superuser=True)
    try:
        rules.validate_password(password, user, password_validators=_RULES)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), pointer="/password") from error
    user.set_password(password)
    user.save()
    return user


def _record(made: list[tuple[str, str, UUID, dict[str, str]]], at: datetime) -> None:
    audit.record(
        actor=ACTOR,
        actor_name="bootstrap",
        at=at,
        entries=[
            audit.Entry(
                action=action,
                target_type=kind,
                target_id=id,
                tenant_id=id if kind == "tenant" else None,
                after=after,
            )
            for action, kind, id, after in made
        ],
    )
