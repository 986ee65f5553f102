"""What an attack is, and how one is carried out."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import DatabaseError, connection, models, transaction

from tests.constraints.catalog import Wall
from tests.constraints.moves import Move, change

UNCOUNTED = -1
"""What psycopg tells for a TRUNCATE."""


@dataclass(frozen=True, slots=True)
class Attack:
    """A raw SQL statement that `wall` has to refuse; `sentence` says what would be true after it.

    `error` is the name in the error, where it is not the wall's own. `behind` are other walls that
    refuse the same statement: they are taken down first, so that `wall` is left to answer.
    """

    wall: str
    sentence: str
    move: Move
    error: str = ""
    behind: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.wall}: {self.sentence}"

    def run(self, *, down: Sequence[Wall]) -> str:
        """Set up the rows, take the walls in `down` away, attack; the name in the error, or "".

        Deferred foreign keys are checked too: an attack that breaks one proves nothing.
        """
        sql, parameters = self.move()
        with connection.cursor() as cursor:
            # PostgreSQL alters no table that still has checks to come.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for wall in down:
            wall.drop()
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(sql, parameters)
                told = cursor.rowcount if cursor.rowcount != UNCOUNTED else 1
                assert told == 1, f"the attack hit {told} rows: {sql}"
        except DatabaseError as error:
            diagnosis = getattr(error.__cause__, "diag", None)
            return getattr(diagnosis, "constraint_name", None) or str(error)
        return ""


def negative(wall: str, model: type[models.Model], column: str, *behind: str) -> Attack:
    """The wall that Django builds for each column of positive integers."""
    name = column.strip('"')
    return Attack(wall, f"{name} is negative", change(model, **{name: -1}), behind=behind)
