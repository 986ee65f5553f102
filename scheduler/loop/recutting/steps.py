"""One step of a recut in each of its states, by what the row says and what the cluster shows. Each
is done twice as well as once, and no network is waited for inside a transaction.

What must not live here: which steps are due, and what becomes of one that fails (`recuts`).
"""

from datetime import datetime, timedelta
from uuid import UUID

from clusters.port import ClusterPort, NodeReport
from controlplane.kernel.crash import crash
from controlplane.kernel.errors import Invalid
from scheduler.loop.recutting import emptying, states, ways
from scheduler.models import Recut, RecutMode, RecutState
from scheduler.services import recuts

SETTLE = timedelta(minutes=2)
"""Between the cordon and the cut: a scheduler that has not seen the cordon yet binds a pod, and
the kubelet takes so long to show a config map to the MIG manager (a minute, and its cache)."""
LIMIT = timedelta(minutes=20)
"""What a cut may take, a reboot of the machine included; and the check after it."""
_BUSY = {"pending", "rebooting"}
"""States in which the MIG manager is at work."""


def take(port: ClusterPort, row: Recut, at: datetime, speed: float) -> None:
    """The one of its state, if its time has come. Raises ClusterError, and Conflict where the row
    has gone on meanwhile."""
    node = port.read_node(name=row.node.name)
    if node is None or row.node_uid not in ("", node.uid):
        states.end(
            row, RecutState.FAILED, at, trouble="the node is gone, or is another machine now"
        )
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
        states.end(row, RecutState.CALLED_OFF, at, trouble="its window went by")
        return
    if node.mig_state in _BUSY:
        return  # somebody else has it cut: what it has then is what it is brought back to
    try:
        recuts.check(node=row.node, cuts=row.wanted)
    except Invalid as wrong:
        states.end(row, RecutState.CALLED_OFF, at, trouble=wrong.message)
        return
    row.before = recuts.cut_now(node=row.node)
    if recuts.counted(row.before) == recuts.counted(row.wanted):
        states.end(row, RecutState.CALLED_OFF, at, trouble="it is cut so already")
        return
    row.node_uid, row.config_before = node.uid, node.mig_config[:63]
    states.to(row, RecutState.CORDONING, at)
    crash("R1")


def _cordon(port: ClusterPort, row: Recut, node: NodeReport, at: datetime) -> None:
    """Tell the cluster of both ways, so that there is one back, and cordon the node, unless
    somebody else did."""
    told = ways.tell(port, row)
    crash("R2")
    if not told.back:
        states.call_off(row, _no_way_back(row), at)
        return
    if not node.cordoned:
        port.cordon(node=node, recut=str(row.id))
    crash("R3")
    row.told_at = at
    states.to(row, RecutState.EMPTYING, at)


def _empty(port: ClusterPort, row: Recut, node: NodeReport, at: datetime, speed: float) -> None:
    if not node.cordoned:
        states.call_off(row, "somebody has taken the cordon off the node", at)
    elif node.mig_config != row.config_before:
        states.call_off(row, f"somebody else has the node cut, as {node.mig_config}", at)
    elif (held := emptying.held(port=port, row=row)) or node.mig_state in _BUSY:
        if at >= row.ends_at:
            states.call_off(
                row, f"it did not become empty in time: {held or 'it is being cut'}", at
            )
        elif row.mode == RecutMode.PREEMPT and emptying.can_empty(port=port, row=row):
            emptying.evict(row=row, at=at, speed=speed)
    elif row.told_at is None or at >= row.told_at + SETTLE:
        states.to(row, RecutState.CUTTING, at)
        crash("R4")


def _cut(port: ClusterPort, row: Recut, node: NodeReport, at: datetime) -> None:
    """Say the way, if that has not been said yet, and follow what comes of it."""
    if node.mig_config == row.config:
        if node.mig_state == "success":
            states.to(row, RecutState.CHECKING, at)
        elif node.mig_state == "failed" or at >= (row.said_at or row.since) + LIMIT:
            states.back(row, f"the MIG manager says {node.mig_state or 'nothing'}", at)
    elif node.mig_config != row.config_before:
        states.give_back(row, f"somebody else has the node cut, as {node.mig_config}", at)
    elif not node.cordoned:
        states.call_off(row, "somebody has taken the cordon off the node", at)
    elif at >= row.since + LIMIT:
        states.call_off(row, "the cluster did not take the way in which it is to be cut", at)
    elif row.told_at is not None and at < row.told_at + SETTLE:
        return  # what was told anew
    else:
        _say(port, row, node, at)


def _say(port: ClusterPort, row: Recut, node: NodeReport, at: datetime) -> None:
    """Have it cut, if the config map still has both ways: somebody may have changed it meanwhile.
    What has to be told anew is waited for, and noted first: an answer may be lost."""
    settled = row.told_at
    states.note(row, told_at=at)
    told = ways.tell(port, row)
    if told.wrote:
        return
    if not told.back:
        states.call_off(row, _no_way_back(row), at)
    elif held := emptying.held(port=port, row=row):  # last: by one who goes round the cordon
        states.call_off(row, f"a device came into use just before the cut: {held}", at)
    else:
        states.note(row, told_at=settled, said_at=at)
        port.cut(node=node, config=row.config)
        crash("R5")


def _no_way_back(row: Recut) -> str:
    return (
        f"there is no way back: the node is cut as {row.config_before}, which the config map does"
        " not have"
    )


def _check(row: Recut, node: NodeReport, at: datetime) -> None:
    """The slices that it has are those that were meant; devices come back a while after."""
    if node.mig_config != row.config:
        states.give_back(row, f"somebody else has the node cut, as {node.mig_config}", at)
    elif node.ready and ways.has(node, row.wanted):
        states.to(row, RecutState.OPENING, at, outcome=RecutState.DONE)
    elif at >= row.since + LIMIT:
        states.back(row, f"it has {ways.said(node)}, which is not what was asked for", at)


def _roll_back(port: ClusterPort, row: Recut, node: NodeReport, at: datetime) -> None:
    """As it was, and checked; what can't be cut back stays cordoned, for a person."""
    back = row.config_before or ways.config_back(row)
    if node.mig_config == back:
        if node.mig_state == "success" and node.ready and ways.has(node, row.before):
            states.to(row, RecutState.OPENING, at, outcome=RecutState.FAILED)
            return
        if node.mig_state in _BUSY:
            states.note(row, busy_at=at)
        said_at = row.said_at or row.since
        seen = row.busy_at is not None and row.busy_at >= said_at
        # A manager that was at work on the cut before says how that went, after the label is set.
        if (node.mig_state == "failed" and seen) or at >= said_at + LIMIT:
            said = node.mig_state or "nothing"
            states.stick(row, f"it could not be cut back either: the MIG manager says {said}", at)
    elif node.mig_config != row.config:
        states.give_back(row, f"somebody else has the node cut, as {node.mig_config}", at)
    elif at >= row.since + LIMIT:
        states.stick(
            row,
            f"it could not be cut back: {emptying.held(port=port, row=row) or 'not taken'}",
            at,
        )
    elif not node.cordoned:
        states.note(row, cordoned_at=at)  # first, so that whoever goes on waits too
        port.cordon(node=node, recut=str(row.id))
    elif row.cordoned_at is not None and at < row.cordoned_at + SETTLE:
        return
    elif not emptying.held(port=port, row=row):
        states.note(row, said_at=at)
        port.cut(node=node, config=back)
        crash("R6")


def _open(port: ClusterPort, row: Recut, node: NodeReport, at: datetime) -> None:
    """The cordon goes if it is of this recut; the end is when the rows have what the node has."""
    if node.mig_state in _BUSY and at < row.since + LIMIT:
        states.note(row, busy_at=at)
        return
    ours = (row.config, row.config_before, ways.config_back(row))
    seen = row.busy_at is not None and row.busy_at >= row.since
    if node.mig_config not in ours and not seen and at < row.since + SETTLE:
        return  # said by hand a moment ago: the manager's last word is of the cut before
    if node.recut == str(row.id) or (row.outcome == RecutState.DONE and _left(node)):
        port.uncordon(node=node)
        crash("R7")
        return  # and see that it is so
    if ways.rows_have(row.node, node) or at >= row.since + LIMIT:
        states.end(row, RecutState(row.outcome), at)


def _left(node: NodeReport) -> bool:
    """Whether the cordon is of a recut that has ended: one that was stuck."""
    try:
        id = UUID(node.recut)
    except ValueError:
        return False
    return Recut.objects.filter(id=id, ended_at__isnull=False).exists()
