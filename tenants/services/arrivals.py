"""People who come by a sign-in provider: joiners get an account, movers other roles, and leavers
lose theirs. What a provider tells of itself is checked before it gets here.

An account is known by the provider's subject alone. No account is ever joined by e-mail address
or name, or whoever runs a provider could become anybody.
"""

from dataclasses import dataclass
from datetime import datetime

from allauth.socialaccount.models import SocialAccount
from django.db import connection, transaction

from controlplane.audit import services as audit
from controlplane.audit.services import Entry
from controlplane.kernel.errors import Invalid, NotAllowed
from tenants.models import GroupRole, Member, User
from tenants.services import members, sessions, tokens, users


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Somebody of whom a provider tells. `names` are what they may be called, the best first;
    `email` is "" unless the provider verifies it, and `groups` None where it tells none."""

    provider: str
    subject: str
    names: tuple[str, ...] = ()
    full_name: str = ""
    email: str = ""
    groups: frozenset[str] | None = None

    @property
    def actor(self) -> str:
        return f"provider:{self.provider}"


def arrive(arrival: Arrival, *, at: datetime) -> User:
    """Their account, with the roles that their groups have now.

    Raises NotAllowed where no group of theirs has a role and nobody gave them one, and for an
    account that somebody closed. What they lose by that is lost all the same.
    """
    with transaction.atomic():
        user = _known(arrival)
        if user is None and _rules(arrival):
            user = _join(arrival, at)
        if user is not None:
            _keep_up(user, arrival)
            is_in = _settle(user, arrival, at)
    if user is None or not is_in:
        raise NotAllowed(
            "No group that your provider names has a role here. Ask somebody who owns a project."
        )
    if not user.is_active:
        raise NotAllowed("This account is closed. Ask who operates Berth.")
    return user


def _known(arrival: Arrival) -> User | None:
    """The account, locked: two arrivals of one person come one after the other."""
    accounts = User.objects.select_for_update(of=("self",)).filter(
        socialaccount__provider=arrival.provider, socialaccount__uid=arrival.subject
    )
    return accounts.first()


def _rules(arrival: Arrival) -> bool:
    """Whether a group of theirs has a role; whoever is told without groups may join."""
    if arrival.groups is None:
        return True
    named = GroupRole.objects.filter(provider=arrival.provider, group__in=arrival.groups)
    return named.exists()


def _join(arrival: Arrival, at: datetime) -> User:
    with connection.cursor() as cursor:  # joiners come one by one
        cursor.execute("LOCK TABLE socialaccount_socialaccount IN SHARE ROW EXCLUSIVE MODE")
    if (user := _known(arrival)) is not None:
        return user
    user = User(username=_free_name(arrival))
    user.set_unusable_password()
    user.save()
    SocialAccount.objects.create(user=user, provider=arrival.provider, uid=arrival.subject)
    after = {"username": user.username, "provider": arrival.provider}
    _record(arrival, Entry("user.create", "user", user.id, after=after), at=at)
    return user


def _free_name(arrival: Arrival) -> str:
    """The first of their names that is one, with a number where another reads like it."""
    longest = (User._meta.get_field("username").max_length or 0) - 8
    for name in (*(name[:longest] for name in arrival.names), arrival.provider):
        try:
            users.check_name(name)
        except Invalid:
            continue
        found, number = name, 1
        while users.alike(found):
            number += 1
            found = f"{name}-{number}"
        return found
    raise AssertionError("a provider's name is a username")


def _keep_up(user: User, arrival: Arrival) -> None:
    first, _, last = arrival.full_name.partition(" ")
    User.objects.filter(pk=user.pk).update(
        first_name=first[:150], last_name=last[:150], email=arrival.email
    )


def _settle(user: User, arrival: Arrival, at: datetime) -> bool:
    """Make the roles that came by the provider's groups what those say now; whether they may come
    in. Who is in no group any more loses sessions and tokens, and without a role of somebody's
    giving the account, until a group brings them back."""
    rules = GroupRole.objects.filter(provider=arrival.provider, group__in=arrival.groups or ())
    wanted = list(rules.exclude(made_by=user).order_by("id"))
    held = list(Member.objects.filter(user=user, group_role__provider=arrival.provider))
    _replace(user, held=held, wanted=wanted, arrival=arrival, at=at)
    has = Member.objects.filter(user=user).exists()
    if user.left_at is not None and (has or arrival.groups is None):
        User.objects.filter(pk=user.pk).update(left_at=None, is_active=True)
        user.left_at, user.is_active = None, True
        _record(arrival, _of(user, "user.return", arrival), at=at)
    if arrival.groups is None:
        return True
    if held and not wanted:
        sessions.end_of(user=user, by=arrival.actor, name=arrival.provider, at=at)
        tokens.revoke_of(user=user, by=arrival.actor, name=arrival.provider, at=at)
    if not has and user.is_active:
        User.objects.filter(pk=user.pk).update(left_at=at, is_active=False)
        user.left_at, user.is_active = at, False
        _record(arrival, _of(user, "user.leave", arrival), at=at)
    return has


def _replace(
    user: User, *, held: list[Member], wanted: list[GroupRole], arrival: Arrival, at: datetime
) -> None:
    kept = {rule.id for rule in wanted} & {member.group_role_id for member in held}
    lost = [member for member in held if member.group_role_id not in kept]
    Member.objects.filter(id__in=[member.id for member in lost]).delete()
    given = [
        Member.objects.create(
            user=user,
            role=rule.role,
            tenant_id=rule.tenant_id,
            project_id=rule.project_id,
            group_role=rule,
            granted_by_id=rule.made_by_id,
            granted_at=at,
            givers=[rule.made_by_id, *rule.givers],
        )
        for rule in wanted
        if rule.id not in kept
    ]
    entries = [
        *(members.entry("member.revoke", member) for member in lost),
        *(members.entry("member.grant", member) for member in given),
    ]
    _record(arrival, *entries, at=at)


def _of(user: User, action: str, arrival: Arrival) -> Entry:
    return Entry(action, "user", user.id, after={"provider": arrival.provider})


def _record(arrival: Arrival, *entries: Entry, at: datetime) -> None:
    audit.record(actor=arrival.actor, actor_name=arrival.provider, entries=entries, at=at)
