"""Planning a recut and calling one off: what is refused, and why."""

from datetime import timedelta

import pytest

from clusters.models import Node
from controlplane.kernel.errors import Conflict, Invalid
from scheduler.models import Recut
from scheduler.services import recuts
from tests.factories import AT
from tests.scheduler.recutting import HALVES, WHOLE, Recutting, recutting
from tests.scheduler.stage import Stage

MINUTE = timedelta(minutes=1)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def of(stage: Stage) -> Recutting:
    return recutting(stage)


def test_one_may_be_called_off_until_it_is_cut(of: Recutting) -> None:
    row = of.plan()
    recuts.call_off(recut=row, actor="user:1", actor_name="oz", at=AT)
    assert of.row.state == "called-off"
    row = of.plan()
    of.go_on()
    recuts.call_off(recut=row, actor="user:1", actor_name="oz", at=of.at)
    of.go_on(MINUTE)
    of.go_on(MINUTE)
    assert (of.row.state, of.row.trouble, of.there.cordoned) == (
        *("called-off", "called off by oz"),
        False,
    )
    of.to_cutting()
    with pytest.raises(Conflict, match="is cutting: it can't be called off any more"):
        recuts.call_off(recut=of.row, actor="user:1", actor_name="oz", at=of.at)


def test_a_node_has_one_at_a_time(of: Recutting) -> None:
    of.plan()
    with pytest.raises(Conflict, match="A recut of n1 is planned, or under way"):
        of.plan()
    assert Recut.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cuts": HALVES[:7]}, "n1 has 8 GPUs; it is said of 7"),
        ({"cuts": ({"3g.40gb": 3},) * 8}, "No GPU can be cut so: 3 x 3g.40gb fit on 1"),
        ({"cuts": ({"9g.90gb": 1},) * 8}, "has no MIG profile 9g.90gb"),
        ({"cuts": WHOLE}, "n1 is cut so already"),
        ({"ends_at": AT}, "The window has to end after it starts"),
        ({"ends_at": AT + timedelta(days=8)}, "within 7 days"),
    ],
)
def test_what_can_not_be_is_refused(of: Recutting, fields: dict[str, object], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        of.plan(**fields)
    assert not Recut.objects.exists()


@pytest.mark.parametrize("strategy", ["none", "single"])
def test_a_node_has_to_show_its_slices(of: Recutting, strategy: str) -> None:
    Node.objects.filter(name="n1").update(labels={"nvidia.com/mig.strategy": strategy})
    with pytest.raises(Invalid, match="The MIG strategy of n1 has to be mixed"):
        of.plan()


def test_a_node_whose_devices_a_driver_publishes_is_not_cut_anew(of: Recutting) -> None:
    Node.objects.update(device_driver="gpu.nvidia.com")
    with pytest.raises(Invalid, match=r"^gpu\.nvidia\.com publishes the GPUs of n1 as they are"):
        of.plan()
