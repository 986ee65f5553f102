"""What came of a row of the matrix: a cell for each who asked."""

from collections.abc import Mapping

type Cells = Mapping[str, tuple[object, object]]
"""Who asked → what they got, and what they should."""


def unlike(cells: Cells) -> Cells:
    """Those in which the two differ."""
    return {who: (got, expected) for who, (got, expected) in cells.items() if got != expected}
