"""What a cycle was planned from, kept for a while, so that it can be planned again, bit for bit.

A snapshot has ids, quantities, and the names of hardware and flavors; of people and of what they
run it has no more than ids. One of 8,000 waiting workloads takes some 0.9 MB.
"""

import logging
import zlib
from dataclasses import dataclass, fields, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import orjson
from django.conf import settings
from django.db.models.functions import Length

from scheduler import core
from scheduler.core import wire
from scheduler.core.compiled import compiled
from scheduler.core.cycle import plan
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.loop import retention
from scheduler.models import CycleInput, CycleRecord

logger = logging.getLogger(__name__)

KEPT_DAYS = 3
"""How long inputs are kept, if there is room for them; less than the records they belong to."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """One plan, its inputs, and the code that made it: a digest of the core's sources.

    `decided` is the plan without its holds, which are many; `digest` is of all of it.
    """

    code: str
    policy: Policy
    snapshot: Snapshot
    decided: Plan
    digest: str


def of(*, snapshot: Snapshot, policy: Policy, made: Plan) -> Inputs:
    """The inputs of the plan `made` just now."""
    return Inputs(code(), policy, snapshot, replace(made, holds=()), digest(made))


def digest(made: Plan) -> str:
    """SHA-256 of the plan as it is written: two are the same, or the digests differ."""
    return sha256(orjson.dumps(made)).hexdigest()


@cache
def code() -> str:
    """The version of the planning code: 12 hexadecimal digits of its sources' SHA-256, and whether
    compiled code decides on shared devices."""
    sources = sorted(Path(core.__path__[0]).rglob("*.py"))
    digits = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    return digits if compiled("node.fragmentation") else f"{digits}, nothing packed"


def written(inputs: Inputs) -> bytes:
    """As JSON, to be parsed again."""
    return orjson.dumps(inputs)


def parsed(text: bytes) -> Inputs:
    """What was written. Raises wire.Unreadable, also for another schema of snapshots."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise wire.Unreadable(f"It is no JSON: {error}.") from error
    if not isinstance(value, dict) or not isinstance(value.get("snapshot"), dict):
        raise wire.Unreadable("It has no snapshot: it is no file of a cycle's inputs.")
    wire.check_schema(value["snapshot"].get("schema"))
    return wire.read(Inputs, value)


def outdate() -> None:
    """Somebody is told another kind of reason to wait than in the last ones; in the transaction
    that tells it, since who dies before `keep` leaves it told."""
    last = CycleInput.objects.order_by("-cycle_id").values("cycle_id")[:1]
    CycleInput.objects.filter(cycle_id__in=last, outdated=False).update(outdated=True)


def keep(
    record: CycleRecord,
    *,
    snapshot: Snapshot,
    policy: Policy,
    made: Plan,
    told: bool,
    carried_out: bool,
) -> None:
    """Store those of the plan `made` just now if it acts, or somebody was `told` another kind of
    reason to wait, or the last ones are outdated, and then forget old ones, also those beyond
    BERTH_INPUTS_MIB.

    Unless somebody is evicted there are BERTH_INPUTS_S between the last ones and what acts, and
    BERTH_INPUTS_HOLDS_S where reasons are all that is new. So who waits does so for the same kind
    of reason as in the last one that is kept, unless that is outdated; it is from the beginning
    where not all that it lets in was `carried_out`. Of what is too large alone no more than the
    digest is stored, and a warning says so, once while that lasts.
    """
    most = settings.BERTH_INPUTS_MIB << 20
    evicts = bool(made.preempts or made.shrinks or made.frees)
    acts = evicts or bool(made.admits or made.grows)
    rows = CycleInput.objects.order_by("-cycle_id")
    last = rows.values_list("start_byte", Length("payload"), "outdated", "cycle_id").first()
    start, length, outdated, last_id = last or (0, 0, True, None)
    if not (acts or told or outdated):
        return
    apart_s = settings.BERTH_INPUTS_S if acts else settings.BERTH_INPUTS_HOLDS_S
    if not most or (not evicts and retention.any_younger(CycleInput, than_s=apart_s)):
        if told:  # again: these may be those of a cycle that was at its end as this one began
            outdate()
        return
    retention.prune(CycleInput, days=KEPT_DAYS)
    inputs = of(snapshot=snapshot, policy=policy, made=made)
    payload = zlib.compress(written(inputs), level=1)
    fits = len(payload) <= most
    if not fits and (length or last_id is None):
        logger.warning(_TOO_LARGE, record.pk, len(payload), settings.BERTH_INPUTS_MIB)
    CycleInput.objects.create(
        cycle=record,
        payload=payload if fits else b"",
        start_byte=start + length,
        digest=inputs.digest,
        schema=snapshot.schema if fits else 0,
        outdated=not carried_out,
    )
    if fits:
        too_early = start + length + len(payload) - most
        CycleInput.objects.filter(start_byte__lt=too_early).delete()


_TOO_LARGE = (
    "cycle %s cannot be planned again: its inputs take %d bytes, and BERTH_INPUTS_MIB is %d;"
    " of those that follow it this is not said until some fit"
)


def kept(cycle_id: UUID) -> Inputs | None:
    """Those of the cycle, None if none are kept. Raises wire.Unreadable for another schema's."""
    found = CycleInput.objects.filter(cycle_id=cycle_id).exclude(payload=b"").first()
    return None if found is None else parsed(zlib.decompress(found.payload))


def replayed(inputs: Inputs) -> Plan:
    """The plan that this code makes of them."""
    return plan(inputs.snapshot, inputs.policy)


def differences(inputs: Inputs, made: Plan) -> list[str]:
    """Of each part of the plan what differs first, a sentence each; [] for the same plan."""
    told = []
    parts = [field.name for field in fields(Plan) if field.name != "holds"]
    for name in parts:
        then, now = getattr(inputs.decided, name), getattr(made, name)
        for nth in range(max(len(then), len(now))):
            before, after = (one[nth] if nth < len(one) else None for one in (then, now))
            if before != after:
                told.append(f"{name}[{nth}] was {_brief(before)} and is {_brief(after)}.")
                break
    if not told and digest(made) != inputs.digest:
        told.append("All but the holds is the same: who is held, or why, differs.")
    return told


def _brief(decision: object) -> str:
    return "missing" if decision is None else orjson.dumps(decision).decode()
