"""A fleet on which a defragmentation, or a lowered quota, has something to move."""

from scheduler.core.lifecycle import State
from scheduler.models import Workload
from tenants.models import Project, User
from tests import factories


def halves(within: Project, by: User) -> list[Workload]:
    """Two nodes of eight GPUs, and on half of each work that would fit on one beside the other."""
    model = factories.flavor()
    factories.quota(within, model, 16_000)
    cluster_ = factories.cluster()
    made = []
    for name in ("n1", "n2"):
        on = factories.node(cluster_, name, gpus=8)
        row = factories.workload(within, by, [model], f"on {name}", state=State.RUNNING, gpus=4)
        placed = factories.place(row, on, model, amount_milli=4000)
        for device_ in on.devices.order_by("ordinal")[:4]:
            factories.span(placed, device_)
        made.append(row)
    return made
