"""What `tenants/_replayed.html` shows of days that were played again."""

from scheduler.services.replays import Replayed
from tenants import policy_words


def shown(found: Replayed) -> dict[str, object]:
    """With each project what refuses most of its work first, as people read the rules."""
    rows = [
        (told, [(policy_words.RULES[each.rule], each.count) for each in told.refused_by])
        for told in found.projects
    ]
    return {"replay": found, "rows": rows}
