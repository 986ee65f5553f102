"""Saying what is permitted and wanted of what is submitted: to a project, below a tenant, or
anywhere. It holds for what comes from now on; nothing that is there is touched."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime

from django.db import transaction

from controlplane.audit.services import Entry
from controlplane.kernel.errors import Invalid, NotAllowed, Problem
from controlplane.kernel.text import shown
from tenants import access
from tenants.access import Action, Actor, Place
from tenants.labels import label_fault
from tenants.models import SubmitPolicy
from tenants.policy import (
    FIELDS,
    MAX_GPUS_MILLI,
    MAX_IMAGES,
    MAX_LABELS,
    MAX_PODS,
    MAX_RUN_TIME_S,
    MAX_VALUES,
    PRIORITY_CLASSES,
    Rules,
    loosened,
)
from tenants.selectors import policies as selectors
from tenants.services import places, trail
from tenants.services.quotas import VersionMismatch

_IMAGE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,298}|[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,297}[/:@]\*"
)
_NUMBERS = (
    ("max_run_time_s", MAX_RUN_TIME_S),
    ("default_run_time_s", MAX_RUN_TIME_S),
    ("max_gpus_milli", MAX_GPUS_MILLI),
    ("max_pods", MAX_PODS),
)


def check(*, of: Place, rules: Rules) -> None:
    """Raises Invalid, with all that is wrong: numbers out of range, words that are none, what
    would permit more than those above do, which could only be said in vain, and defaults that the
    limits do not permit."""
    chain = (*selectors.above(of), selectors.drafted(of, rules))
    problems = list(_faults(rules)) or [
        Problem(pointer=found.pointer, code="looser", message=found.message)
        for found in loosened(chain, rules)
    ]
    if problems:
        raise Invalid(problems[0].message, code=problems[0].code, problems=tuple(problems))


def set_policy(
    *,
    actor: Actor,
    of: Place,
    rules: Rules,
    version: int,
    at: datetime,
) -> SubmitPolicy:
    """Have the project, tenant or, for None, the fleet say this and nothing else.

    What somebody says by a role above the place only such change again: a project's own people
    can't give it another cost centre. `version` is the one that the caller saw, 0 where nothing
    was said yet. Raises NotFound or NotAllowed, Invalid as `check`, VersionMismatch when somebody
    said something meanwhile.
    """
    access.authorize_at(actor, Action.EDIT_POLICY, place=of)
    check(of=of, rules=rules)
    is_above = selectors.may_set_above(actor, of)
    # Who takes all back from above keeps nobody from saying something.
    said: dict[str, object] = {**asdict(rules), "is_from_above": is_above and rules != Rules()}
    project, tenant = access.project_and_tenant(of)
    with transaction.atomic():
        places.lock_tree()
        policy, made = SubmitPolicy.objects.select_for_update().get_or_create(
            project=project, tenant=tenant, defaults=said
        )
        seen = 0 if made else policy.version
        if version != seen:
            raise VersionMismatch(f"The policy is at version {seen} by now, not {version}.")
        if policy.is_from_above and not is_above:
            raise NotAllowed(f"What {of} says was said by who is above it: ask them.")
        before = {} if made else _told(policy)
        if not made:
            for name, value in said.items():
                setattr(policy, name, value)
            policy.version += 1
            policy.save(update_fields=[*said, "version"])
        tenant_id, project_id = access.ids_at(of)
        entry = Entry(
            action="policy.set",
            target_type="policy",
            target_id=policy.id,
            tenant_id=tenant_id,
            project_id=project_id,
            before=before,
            after=_told(policy),
        )
        trail.record(entry, actor=actor, at=at)
    return policy


def _told(policy: SubmitPolicy) -> dict[str, object]:
    return {
        **asdict(policy.rules),
        "is_from_above": policy.is_from_above,
        "version": policy.version,
    }


def _faults(rules: Rules) -> Iterator[Problem]:
    for name, most in _NUMBERS:
        number = getattr(rules, name)
        if number is not None and not 1 <= number <= most:
            message = f"{number:,} is not between 1 and {most:,}."
            yield Problem(pointer=f"/{name}", code="out-of-range", message=message)
    yield from _unknown("priority_classes", rules.priority_classes, PRIORITY_CLASSES)
    yield from _unknown("forbidden_fields", rules.forbidden_fields, FIELDS)
    if rules.default_priority_class:
        names = (rules.default_priority_class,)
        yield from _unknown("default_priority_class", names, PRIORITY_CLASSES)
    for image in rules.images:
        if not _IMAGE.fullmatch(image):
            message = (
                f"{shown(image)} is no image, and no beginning of images: that ends with /*, :* or"
                " @*."
            )
            yield Problem(pointer="/images", code="invalid", message=message)
    yield from _too_many("images", len(rules.images), MAX_IMAGES)
    for key, values in rules.required_labels.items():
        for value in values or ("",):
            if fault := label_fault(key, value):
                yield Problem(pointer="/required_labels", code=fault[0], message=fault[1])
        if "" in values:
            message = f"{key}: a value that may be given is no empty one."
            yield Problem(pointer="/required_labels", code="invalid", message=message)
        yield from _too_many("required_labels", len(values), MAX_VALUES)
    for key, value in rules.default_labels.items():
        if fault := label_fault(key, value):
            yield Problem(pointer="/default_labels", code=fault[0], message=fault[1])
    for name in ("required_labels", "default_labels"):
        yield from _too_many(name, len(getattr(rules, name)), MAX_LABELS)


def _unknown(rule: str, names: tuple[str, ...], known: tuple[str, ...]) -> Iterator[Problem]:
    for name in names:
        if name not in known:
            message = f"{shown(name)} is none; known: {', '.join(known)}."
            yield Problem(pointer=f"/{rule}", code="unknown", message=message)
    if len(set(names)) != len(names):
        yield Problem(pointer=f"/{rule}", code="repeated", message="Each may stand here once.")


def _too_many(rule: str, count: int, most: int) -> Iterator[Problem]:
    if count > most:
        message = f"{count} are too many; at most {most}."
        yield Problem(pointer=f"/{rule}", code="too-many", message=message)
