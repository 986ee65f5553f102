"""Each cell of the matrix: a fault in a phase, and then nothing is lost, doubled or left over."""

import pytest

from tests.faults.scene import Scene
from tests.faults.stand import Stand
from tests.faults.table import Cell, cells

pytestmark = pytest.mark.kube


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.parametrize("cell", list(cells()), ids=str)
def test_nothing_is_lost_doubled_or_left_over(cell: Cell, stand: Stand) -> None:
    scene = Scene(stand, cell.phase, cell.struck)
    with stand.playing():
        scene.prepare()
        with cell.fault.put(scene):
            scene.begin()
        scene.end_well()
