"""Recuts of nodes: planning one, calling one off, and the one place where their state changes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from clusters.models import Cluster, Device, DeviceSlice, Node
from controlplane.audit import services as audit
from controlplane.kernel import hints
from controlplane.kernel.errors import Conflict, Invalid
from controlplane.kernel.ids import uuid7
from scheduler.core.node import mig
from scheduler.models import Recut, RecutMode, RecutState
from scheduler.models.recut import ENDED, LONGEST
from scheduler.selectors import cuttable

type Cuts = Sequence[Mapping[str, int]]
"""Of each device of a node, how many slices of which profile; {} is a whole one."""

WINDOW = timedelta(days=1)
"""In which a node has to become empty, where nobody says."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A node cut anew, in a window; `actor` is as the audit has it."""

    node: Node
    cuts: Cuts
    mode: RecutMode
    starts_at: datetime
    ends_at: datetime
    actor: str
    actor_name: str


def plan(*, asked: Asked, at: datetime) -> Recut:
    """Have the node cut anew. Raises Invalid for what can't be cut so, or a window that is over,
    backwards or longer than LONGEST, and Conflict while another recut of the node is live."""
    if not max(at, asked.starts_at) < asked.ends_at <= asked.starts_at + LONGEST:
        raise Invalid(
            "The window has to end after it starts, in the future, and within"
            f" {LONGEST.days} days: it is from {asked.starts_at:%F %R} to {asked.ends_at:%F %R}.",
            pointer="/ends_at",
        )
    check(node=asked.node, cuts=asked.cuts)
    before = cut_now(node=asked.node)
    if counted(before) == counted(asked.cuts):
        raise Invalid(f"{asked.node.name} is cut so already.", pointer="/devices")
    id = uuid7()
    try:
        with transaction.atomic():
            row = Recut.objects.create(
                id=id,
                node=asked.node,
                wanted=[dict(cut) for cut in asked.cuts],
                before=before,
                config=f"berth-{settings.BERTH_INSTALLATION}-{id.hex[-12:]}",
                mode=asked.mode,
                planned_by=asked.actor_name,
                planned_at=at,
                starts_at=asked.starts_at,
                ends_at=asked.ends_at,
                since=at,
            )
            _record(row, asked.actor, asked.actor_name, at)
    except IntegrityError as error:
        raise Conflict(f"A recut of {asked.node.name} is planned, or under way.") from error
    hints.hint(hints.RECUT)
    return row


def check(*, node: Node, cuts: Cuts) -> None:
    """Raises Invalid where the node can't be cut so, whatever runs there."""
    devices = list(_devices(node))
    if refusal := cuttable.refusal(node=node, devices=devices):
        raise Invalid(refusal, pointer="/node")
    if len(cuts) != len(devices):
        raise Invalid(
            f"{node.name} has {len(devices)} GPUs; it is said of {len(cuts)} how they are to be"
            " cut.",
            pointer="/devices",
        )
    for cut in cuts:
        try:
            mig.arrange(model=devices[0].model, counts=cut, devices=1)
        except mig.ImpossibleLayout as error:
            raise Invalid(f"No GPU can be cut so: {error}.", pointer="/devices") from None


def cut_now(*, node: Node) -> list[dict[str, int]]:
    """How its devices are cut, by ordinal, as far as is known: which of them holds which slice is
    told by nobody."""
    ids = list(_devices(node).order_by("ordinal").values_list("id", flat=True))
    slices = DeviceSlice.objects.filter(device__in=ids, gone_at__isnull=True)
    found: dict[object, dict[str, int]] = {id: {} for id in ids}
    for device, profile in slices.values_list("device_id", "profile"):
        found[device][profile] = found[device].get(profile, 0) + 1
    return list(found.values())


def counted(cuts: Cuts) -> tuple[Counter[str], int]:
    """Slices by profile, and whole devices: all that a cluster tells of how a node is cut."""
    slices: Counter[str] = Counter()
    for cut in cuts:
        slices.update(cut)
    return slices, sum(1 for cut in cuts if not cut)


def call_off(*, recut: Recut, actor: str, actor_name: str, at: datetime) -> Recut:
    """One whose node has not been cut yet. Raises Conflict for another."""
    with transaction.atomic():
        row = Recut.objects.select_for_update().get(pk=recut.pk)
        if row.state == RecutState.PLANNED:
            ends = RecutState.CALLED_OFF
        elif row.state in (RecutState.CORDONING, RecutState.EMPTYING):
            ends = RecutState.OPENING
        else:
            raise Conflict(f"This recut is {row.state}: it can't be called off any more.")
        row.outcome = RecutState.CALLED_OFF
        row.trouble = f"called off by {actor_name}"
        move(row, ends, actor=actor, actor_name=actor_name, at=at)
    hints.hint(hints.RECUT)
    return row


def move(row: Recut, state: RecutState, *, actor: str, actor_name: str, at: datetime) -> None:
    """The recut goes on to that state, with what else was changed of `row`; told in the audit.
    Where that lets Berth place work there, or not, plans see it. In a transaction of its own, or
    the caller's. Raises Conflict where it has gone on meanwhile."""
    with transaction.atomic():
        # Before the node, which the trigger takes: so does the inventory.
        Cluster.objects.filter(nodes=row.node_id).update(inventory_rev=F("inventory_rev") + 1)
        moved = Recut.objects.filter(pk=row.pk, state=row.state, ended_at=None).update(
            state=state,
            since=at,
            ended_at=at if state in ENDED else None,
            node_uid=row.node_uid,
            before=row.before,
            config_before=row.config_before,
            told_at=row.told_at,
            outcome=row.outcome,
            trouble=row.trouble,
            stuck=row.stuck,
        )
        if not moved:
            raise Conflict(f"This recut is no longer {row.state}.")
        row.refresh_from_db()
        _record(row, actor, actor_name, at)
    if state in ENDED:
        hints.hint(hints.CYCLE)


def _devices(node: Node) -> QuerySet[Device]:
    return Device.objects.filter(node=node, gone_at__isnull=True)


def _record(row: Recut, actor: str, actor_name: str, at: datetime) -> None:
    after = {"recut": str(row.id), "mode": row.mode, "wanted": row.wanted, "before": row.before}
    if row.trouble:
        after["trouble"] = row.trouble
    audit.record(
        actor=actor,
        actor_name=actor_name,
        at=at,
        entries=[
            audit.Entry(
                action=f"recut.{row.state}",
                target_type="node",
                target_id=row.node_id,
                after=after,
            )
        ],
    )
