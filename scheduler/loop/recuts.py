"""Recuts of nodes, step by step: what the row says and what the cluster shows decide what is done
next, so whoever comes after a crash goes on where it stopped. Each step is done twice as well as
once, and no network is waited for inside a transaction.

That nothing is placed on the node meanwhile, and that it isn't cut while a device of it is held,
the database holds (migration 0051); that nobody else's pod is there, a list of pods each time.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from clusters.models import Cluster, Node
from clusters.port import ClusterError, ClusterPort, Fault, NodeReport, PodReport
from controlplane.kernel.crash import crash
from controlplane.kernel.errors import Conflict, Invalid
from scheduler.loop import emptying
from scheduler.models import Recut, RecutMode, RecutState
from scheduler.services import recuts
from scheduler.services.recuts import Cuts

logger = logging.getLogger(__name__)

ACTOR, NAME = "system:scheduler", "scheduler"
SETTLE = timedelta(minutes=2)
"""Between the cordon and the cut: a scheduler that has not seen the cordon yet binds a pod, and
the kubelet takes so long to show a config map to the MIG manager (a minute, and its cache)."""
LIMIT = timedelta(minutes=20)
"""What a cut may take, a reboot of the machine included; and the check after it."""
_BUSY = {"pending", "rebooting"}
"""States in which the MIG manager is at work."""
_FOR_GOOD = {Fault.FORBIDDEN, Fault.NOT_FOUND, Fault.MALFORMED, Fault.INVALID}
"""What a later try would meet again."""
STEPS = 5
"""The most of one recut in a call."""


def carry_on(
    *, port: ClusterPort, cluster: Cluster, at: Callable[[], datetime], speed: float = 1.0
) -> bool:
    """Each recut there that is due goes on as far as it can; whether the cluster could be reached.
    `speed` is how many seconds of `at` pass in one."""
    live = Recut.objects.filter(
        node__cluster=cluster, ended_at__isnull=True, starts_at__lte=at()
    ).select_related("node__cluster")
    for row in live.order_by("starts_at", "id"):
        try:
            try:
                for _ in range(STEPS):
                    before = row.state
                    _step(port, row, at(), speed)
                    if row.state == before or not row.live:
                        break
            except Conflict as passed:  # somebody called it off meanwhile
                logger.info("recut of %s: %s", row.node.name, passed.message)
                _leave_open(port, row)
        except ClusterError as error:
            if error.fault is not Fault.CONFLICT:  # else the node has changed: look again
                logger.warning("recut of %s: %s", row.node.name, error)
                _give_up(row, error, at())
            if error.fault is Fault.UNREACHABLE:
                return False
    return True


def _leave_open(port: ClusterPort, row: Recut) -> None:
    """Of one that has ended while this process was about to cordon: nobody else takes it off."""
    row.refresh_from_db()
    if row.live or row.stuck:
        return
    node = port.read_node(name=row.node.name)
    if node is not None and node.recut == str(row.id):
        port.uncordon(node=node)


def _step(port: ClusterPort, row: Recut, at: datetime, speed: float) -> None:
    node = port.read_node(name=row.node.name)
    if node is None or row.node_uid not in ("", node.uid):
        _end(row, RecutState.FAILED, at, trouble="the node is gone, or is another machine now")
        return
    match row.state:
        case RecutState.PLANNED:
            _begin(row, node, at)
        case RecutState.CORDONING:
            _cordon(port, row, node, at)
        case RecutState.EMPTYING:
            _empty(port, row, node, at, speed)
        case RecutState.CUTTING:
            _cut(port, row, node, at)
        case RecutState.CHECKING:
            _check(row, node, at)
        case RecutState.ROLLING_BACK:
            _roll_back(port, row, node, at)
        case RecutState.OPENING:
            _open(port, row, node, at)


def _begin(row: Recut, node: NodeReport, at: datetime) -> None:
    if at >= row.ends_at:
        _end(row, RecutState.CALLED_OFF, at, trouble="its window went by")
        return
    if node.mig_state in _BUSY:
        return  # somebody else has it cut: what it has then is what it is brought back to
    try:
        recuts.check(node=row.node, cuts=row.wanted)
    except Invalid as wrong:
        _end(row, RecutState.CALLED_OFF, at, trouble=wrong.message)
        return
    row.before = recuts.cut_now(node=row.node)
    if recuts.counted(row.before) == recuts.counted(row.wanted):
        _end(row, RecutState.CALLED_OFF, at, trouble="it is cut so already")
        return
    row.node_uid, row.config_before = node.uid, node.mig_config[:63]
    _to(row, RecutState.CORDONING, at)
    crash("R1")


def _cordon(port: ClusterPort, row: Recut, node: NodeReport, at: datetime) -> None:
    """Tell the cluster of both ways, so that there is one back, and cordon the node, unless
    somebody else did."""
    if not row.config_before:
        _tell(port, row, config=_config_back(row), cuts=row.before)
    known = _tell(port, row, config=row.config, cuts=row.wanted)
    crash("R2")
    if row.config_before and row.config_before not in known:
        _call_off(
            row,
            f"there is no way back: the node is cut as {row.config_before}, which the config map"
            " does not have",
            at,
        )
        return
    if not node.cordoned:
        port.cordon(node=node, recut=str(row.id))
    crash("R3")
    row.told_at = at
    _to(row, RecutState.EMPTYING, at)


def _empty(port: ClusterPort, row: Recut, node: NodeReport, at: datetime, speed: float) -> None:
    if not node.cordoned:
        _call_off(row, "somebody has taken the cordon off the node", at)
    elif node.mig_config != row.config_before:
        _call_off(row, f"somebody else has the node cut, as {node.mig_config}", at)
    elif (held := _held(port, row)) or node.mig_state in _BUSY:
        if at >= row.ends_at:
            _call_off(row, f"it did not become empty in time: {held or 'it is being cut'}", at)
        elif row.mode == RecutMode.PREEMPT and _can_empty(port, row):
            emptying.evict(row=row, at=at, speed=speed)
    elif row.told_at is None or at >= row.told_at + SETTLE:
        _to(row, RecutState.CUTTING, at)
        crash("R4")


def _cut(port: ClusterPort, row: Recut, node: NodeReport, at: datetime) -> None:
    """Say the way, if that has not been said yet, and follow what comes of it."""
    if node.mig_config == row.config:
        if node.mig_state == "success":
            _to(row, RecutState.CHECKING, at)
        elif node.mig_state == "failed" or at >= (row.said_at or row.since) + LIMIT:
            _back(row, f"the MIG manager says {node.mig_state or 'nothing'}", at)
    elif node.mig_config != row.config_before:
        _give_back(row, f"somebody else has the node cut, as {node.mig_config}", at)
    elif not node.cordoned:
        _call_off(row, "somebody has taken the cordon off the node", at)
    elif held := _held(port, row):  # a pod of somebody who goes round the cordon
        _call_off(row, f"a device came into use just before the cut: {held}", at)
    elif at >= row.since + LIMIT:
        _call_off(row, "the cluster did not take the way in which it is to be cut", at)
    else:
        _note(row, said_at=at)
        port.cut(node=node, config=row.config)
        crash("R5")


def _check(row: Recut, node: NodeReport, at: datetime) -> None:
    """The slices that it has are those that were meant; devices come back a while after."""
    if node.mig_config != row.config:
        _give_back(row, f"somebody else has the node cut, as {node.mig_config}", at)
    elif node.ready and _has(node, row.wanted):
        _to(row, RecutState.OPENING, at, outcome=RecutState.DONE)
    elif at >= row.since + LIMIT:
        _back(row, f"it has {_said(node)}, which is not what was asked for", at)


def _roll_back(port: ClusterPort, row: Recut, node: NodeReport, at: datetime) -> None:
    """As it was, and checked; what can't be cut back stays cordoned, for a person."""
    back = row.config_before or _config_back(row)
    if node.mig_config == back:
        if node.mig_state == "success" and node.ready and _has(node, row.before):
            _to(row, RecutState.OPENING, at, outcome=RecutState.FAILED)
            return
        if node.mig_state in _BUSY:
            _note(row, busy_at=at)
        said_at = row.said_at or row.since
        seen = row.busy_at is not None and row.busy_at >= said_at
        # A manager that was at work on the cut before says how that went, after the label is set.
        if (node.mig_state == "failed" and seen) or at >= said_at + LIMIT:
            said = node.mig_state or "nothing"
            _stick(row, f"it could not be cut back either: the MIG manager says {said}", at)
    elif node.mig_config != row.config:
        _give_back(row, f"somebody else has the node cut, as {node.mig_config}", at)
    elif at >= row.since + LIMIT:
        _stick(row, f"it could not be cut back: {_held(port, row) or 'not taken'}", at)
    elif not node.cordoned:
        _note(row, cordoned_at=at)  # first, so that whoever goes on waits too
        port.cordon(node=node, recut=str(row.id))
    elif row.cordoned_at is not None and at < row.cordoned_at + SETTLE:
        return
    elif not _held(port, row):
        _note(row, said_at=at)
        port.cut(node=node, config=back)
        crash("R6")


def _open(port: ClusterPort, row: Recut, node: NodeReport, at: datetime) -> None:
    """The cordon goes if it is of this recut; the end is when the rows have what the node has."""
    if node.mig_state in _BUSY and at < row.since + LIMIT:
        _note(row, busy_at=at)
        return
    ours = (row.config, row.config_before, _config_back(row))
    seen = row.busy_at is not None and row.busy_at >= row.since
    if node.mig_config not in ours and not seen and at < row.since + SETTLE:
        return  # said by hand a moment ago: the manager's last word is of the cut before
    if node.recut == str(row.id) or (row.outcome == RecutState.DONE and _left(node)):
        port.uncordon(node=node)
        crash("R7")
        return  # and see that it is so
    if _rows_have(row.node, node) or at >= row.since + LIMIT:
        _end(row, RecutState(row.outcome), at)


def _left(node: NodeReport) -> bool:
    """Whether the cordon is of a recut that has ended: one that was stuck."""
    try:
        id = UUID(node.recut)
    except ValueError:
        return False
    return Recut.objects.filter(id=id, ended_at__isnull=False).exists()


def _tell(port: ClusterPort, row: Recut, *, config: str, cuts: Cuts) -> frozenset[str]:
    """Ways that a node is cut in, or that a live recut means, are kept."""
    cluster = row.node.cluster
    live = Recut.objects.filter(node__cluster=cluster, ended_at__isnull=True)
    labels = Node.objects.filter(cluster=cluster, gone_at=None).values_list("labels", flat=True)
    keep = {
        name for each in live for name in (each.config, each.config_before, _config_back(each))
    }
    keep |= {str(each.get("nvidia.com/mig.config", "")) for each in labels}
    return port.write_mig_config(config=config, cuts=cuts, keep=keep)


def _config_back(row: Recut) -> str:
    """Of the way back, where the node was cut in none that has a name."""
    return f"{row.config}-old"


def _held(port: ClusterPort, row: Recut) -> str:
    """Who holds a device there, "" for nobody; by the rows, then by a fresh list."""
    ours = emptying.holders(node=row.node)
    if ours:
        return f"held by {', '.join(ours)}"
    there = [f"{pod.namespace}/{pod.name}" for pod in _pods(port, row)]
    return f"held by the pod {', '.join(sorted(there)[:3])}" if there else ""


def _can_empty(port: ClusterPort, row: Recut) -> bool:
    """Nobody is stopped for a node that others keep in use: what may not be preempted, and pods
    that Berth did not make."""
    if not emptying.can_empty(node=row.node):
        return False
    return not any(not pod.workload for pod in _pods(port, row))


def _pods(port: ClusterPort, row: Recut) -> list[PodReport]:
    """Those that hold a device there, by a fresh list."""
    return [
        pod
        for pod in port.list_pods().items
        if pod.node == row.node.name and not pod.phase.ended and any(n for _, n in pod.resources)
    ]


def _has(node: NodeReport, cuts: Cuts) -> bool:
    whole = sum(1 for device in node.devices if device.mode == "whole")
    slices, wanted = recuts.counted(cuts)
    return (dict(node.mig_counts), whole) == (dict(slices), wanted)


def _said(node: NodeReport) -> str:
    counts = [f"{count} x {profile}" for profile, count in sorted(node.mig_counts.items())]
    return ", ".join(counts) or "no slices"


def _rows_have(node: Node, report: NodeReport) -> bool:
    """Whether the inventory shows it as it is by now: the watch may be a moment behind."""
    row = Node.objects.get(pk=node.pk)
    if row.schedulable != report.schedulable:
        return False
    return _has(report, recuts.cut_now(node=row))


def _give_up(row: Recut, error: ClusterError, at: datetime) -> None:
    """What can't be begun, for want of a right or of a config map, or in time, is not begun; what
    has begun ends as its state allows. What a later try would meet again is told meanwhile."""
    for_good = error.fault in _FOR_GOOD
    over = at >= row.ends_at
    try:
        match row.state:
            case RecutState.PLANNED if for_good or over:
                _end(row, RecutState.CALLED_OFF, at, trouble=str(error))
            case RecutState.CORDONING if for_good or over:
                _call_off(row, str(error), at)
            case RecutState.EMPTYING if over:
                _call_off(row, str(error), at)
            case RecutState.PLANNED | RecutState.CORDONING | RecutState.EMPTYING:
                if for_good:
                    _note(row, trouble=str(error)[:500])
            case _ if for_good and at >= row.since + LIMIT:
                _stick(row, str(error), at)
            case _ if for_good and str(error) not in row.trouble:
                _note(row, trouble=_both(row.trouble, str(error)))
    except Conflict as passed:
        logger.info("recut of %s: %s", row.node.name, passed.message)


def _call_off(row: Recut, trouble: str, at: datetime) -> None:
    """Before anything was cut."""
    _to(row, RecutState.OPENING, at, outcome=RecutState.CALLED_OFF, trouble=trouble)


def _give_back(row: Recut, trouble: str, at: datetime) -> None:
    """The node is left as it is."""
    _to(row, RecutState.OPENING, at, outcome=RecutState.FAILED, trouble=trouble)


def _back(row: Recut, trouble: str, at: datetime) -> None:
    _to(row, RecutState.ROLLING_BACK, at, outcome=RecutState.FAILED, trouble=trouble)


def _stick(row: Recut, trouble: str, at: datetime) -> None:
    logger.error("node %s stays cordoned: %s", row.node.name, trouble)
    row.stuck = True
    _end(row, RecutState.FAILED, at, trouble=_both(row.trouble, trouble))


def _end(row: Recut, state: RecutState, at: datetime, *, trouble: str = "") -> None:
    _to(row, state, at, outcome=state, trouble=trouble)


def _to(
    row: Recut, state: RecutState, at: datetime, *, outcome: str = "", trouble: str = ""
) -> None:
    row.outcome, row.trouble = outcome or row.outcome, (trouble or row.trouble)[:500]
    if state == RecutState.DONE:
        row.trouble = ""  # what stood in the way for a while
    recuts.move(row, state, actor=ACTOR, actor_name=NAME, at=at)


def _both(told: str, trouble: str) -> str:
    """One after the other, each once, as far as there is room."""
    if not told or told in trouble:
        return trouble[:500]
    return told if trouble in told else f"{told[:250]}; {trouble}"[:500]


def _note(row: Recut, **fields: datetime | str) -> None:
    """Written down within a state. Raises Conflict where it has gone on meanwhile."""
    for name, value in fields.items():
        setattr(row, name, value)
    noted = Recut.objects.filter(pk=row.pk, state=row.state).update(
        trouble=row.trouble,
        cordoned_at=row.cordoned_at,
        said_at=row.said_at,
        busy_at=row.busy_at,
    )
    if not noted:
        raise Conflict(f"This recut is no longer {row.state}.")


def forget_opened(*, at: datetime) -> None:
    """Nodes that were stuck and that somebody has opened since are so no longer; what has just
    been left cordoned may not have been seen so yet."""
    Recut.objects.filter(stuck=True, node__schedulable=True, ended_at__lte=at - SETTLE).update(
        stuck=False
    )


def due(*, at: datetime) -> list[UUID]:
    """The clusters in which a recut is to go on."""
    live = Recut.objects.filter(ended_at__isnull=True, starts_at__lte=at)
    return sorted(set(live.values_list("node__cluster_id", flat=True)))
