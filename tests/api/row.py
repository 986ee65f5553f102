"""A row of the access matrix."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.api.world import World

type Body = Callable[[World], Mapping[str, Any]]  # Any: JSON values

TENANTS = "200 200 200 200 200 200 200 200 404 401 401 200 404 200"
"""Who sees an object of the project."""


@dataclass(frozen=True)
class Row:
    """`ids` names what of the world stands for each argument of the route; `query` follows it.

    `form`: the body is sent as a form, as a page's is.
    """

    expect: str
    ids: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    query: Callable[[World], str] = lambda world: ""
    form: bool = False
