"""Each wall refuses its attacks by name, without it they go through, and each wall is attacked."""

import pytest
from django.db import IntegrityError, connection, models

from controlplane.kernel.ids import uuid7
from scheduler.models import PlacementSpan
from tenants.models import Charge
from tests.constraints.attack import Attack
from tests.constraints.attacks import ATTACKS
from tests.constraints.catalog import Wall, guarded_tables, walls
from tests.constraints.moves import insert_like
from tests.constraints.rows import Values, make

pytestmark = pytest.mark.django_db

every_attack = pytest.mark.parametrize("attack", ATTACKS, ids=str)


def _walls(names: tuple[str, ...]) -> list[Wall]:
    found = walls()
    assert not (missing := set(names) - found.keys()), f"the database lacks {missing}"
    return [found[name] for name in names]


@every_attack
def test_a_wall_refuses(attack: Attack) -> None:
    assert attack.run(down=_walls(attack.behind)) == (attack.error or attack.wall)


@every_attack
def test_nothing_but_that_wall_refuses(attack: Attack) -> None:
    """Whoever removes the wall sees a test fail, because no other wall hides its absence."""
    assert attack.run(down=_walls((*attack.behind, attack.wall))) == ""


@pytest.mark.parametrize(
    ("model", "columns", "wall"),
    [
        (PlacementSpan, {"placement_id": uuid7(), "span": "[4,8)"}, "span_fits"),
        (Charge, {"usage_id": uuid7()}, "charge_fits"),
    ],
)
def test_what_is_checked_against_a_row_never_comes_before_it(
    model: type[models.Model], columns: Values, wall: str
) -> None:
    """As foreign keys are deferred, it could, and be wrong once that row is there."""
    sql, parameters = insert_like(make(model), **columns)
    with pytest.raises(IntegrityError) as error, connection.cursor() as cursor:
        cursor.execute(sql, parameters)
    assert error.value.__cause__.diag.constraint_name == wall  # type: ignore[union-attr]  # psycopg


def test_every_wall_is_attacked_and_every_attack_has_a_wall() -> None:
    assert sorted({attack.wall for attack in ATTACKS}) == sorted(walls())


def test_a_table_that_keeps_its_rows_is_not_emptied_at_once_either() -> None:
    kept, never_emptied = guarded_tables()
    assert "audit_auditevent" in kept
    assert kept == never_emptied


def test_no_two_attacks_have_one_name() -> None:
    assert len({str(attack) for attack in ATTACKS}) == len(ATTACKS)
