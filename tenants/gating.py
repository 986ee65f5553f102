"""A gate as somebody asks for it, and its bounds. Pure: the command line reads it, too."""

from dataclasses import dataclass

KINDS = ("data", "approval", "budget", "other")
"""As `models.GateKind`."""
GATE_NAME = r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"
MAX_GATES = 10
"""Of a project, and as many again of one submission."""
MAX_DECIDE_S = 90 * 24 * 3600


@dataclass(frozen=True, slots=True)
class GateSpec:
    """`owner` is a user's name. Not opened `within_s` seconds after the submission it is refused,
    None never."""

    name: str
    kind: str
    owner: str
    within_s: int | None = None
