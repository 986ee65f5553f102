"""Who can sign in to the demo. The seed makes these users; the demo prints them.

What must not live here: any user of a real installation. The password works only with BERTH_DEMO=1
(controlplane/demo/hashers.py).
"""

from dataclasses import dataclass

PASSWORD = "berth-demo"  # noqa: S105  shown to everyone who starts the demo


@dataclass(frozen=True, slots=True)
class Login:
    """One user; `tenant` is "" for those who serve the whole installation."""

    username: str
    role: str
    tenant: str

    @property
    def title(self) -> str:
        return f"{self.role} of {self.tenant}" if self.tenant else self.role


LOGINS = (
    Login("ada", "owner", "Vision Lab"),
    Login("ben", "member", "Vision Lab"),
    Login("cleo", "member", "Language Lab"),
    Login("dora", "member", "Climate Lab"),
    Login("oz", "operator", ""),
    Login("pia", "approver", ""),
)


def table() -> str:
    """The logins as aligned lines."""
    rows = [("login", "password", "who")]
    rows += [(login.username, PASSWORD, login.title) for login in LOGINS]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
