"""Whether a commit waits for the disk: each does, but for one that need not (ADR 0042)."""

from typing import Final

NOT_WAITING: Final = "(SELECT set_config('synchronous_commit', 'off', true)) AS not_waiting"
"""In the FROM of a statement: the commit of its transaction does not wait for the disk.

All see it at once, as any other. A crash of the database server, and nothing else, may undo it,
for as long as no later commit has waited: that one writes all before it."""
