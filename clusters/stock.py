"""Which devices a flavor is of: its stock, one model or, of one capacity type, a part of it.

A device is of one stock: that of its node's capacity type where any flavor of its model is of that
type, else the general one (ADR 0094). Rows have both of a stock, `model` and
`capacity`; planning, queues and figures name it by one text, in which MIG's tables find the
model's board as well (`core.node.mig.board`).
"""

from django.db.models import Case, F, Value, When
from django.db.models.functions import Concat

LONGEST = 100
"""Characters of a name."""


def name(*, model: str, capacity: str) -> str:
    """`model`, and beside it the type in brackets, of those of one `capacity` alone."""
    return f"{model} ({capacity})" if capacity else model


def column(path: str = "") -> Case:
    """The same, of the row that a query has at `path`, such as "node__devices__"."""
    of_one = Concat(f"{path}model", Value(" ("), f"{path}capacity", Value(")"))
    return Case(When(**{f"{path}capacity": ""}, then=F(f"{path}model")), default=of_one)


def sql(row: str) -> str:
    """The same, in SQL, of the row of that name."""
    of_one = f"{row}.model || ' (' || {row}.capacity || ')'"
    return f"CASE {row}.capacity WHEN '' THEN {row}.model ELSE {of_one} END"
