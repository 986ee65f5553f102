"""What the demo's projects may run on from the start."""

from datetime import UTC, datetime

import pytest

from controlplane.demo import seed
from tenants.models import Project


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "accepted"),
    [
        (["whole"], "hardware"),
        (["whole", "mps"], "memory"),
        (["mps", "slot", "whole"], "none"),
    ],
)
def test_a_project_accepts_what_it_has_a_quota_of(
    monkeypatch: pytest.MonkeyPatch, given: list[str], accepted: str
) -> None:
    flavors = [
        ("whole", "whole", "A9", "", "hardware", 1024, "1.00"),
        ("mps", "share", "A9", "", "memory", 1024, "1.00"),
        ("slot", "share", "A9", "", "none", 1024, "1.00"),
    ]
    [(tenant, _), *_] = seed.PROJECTS
    monkeypatch.setattr(seed, "FLAVORS", flavors)
    projects = {(tenant, "one"): ("One", dict.fromkeys(given, 1))}
    monkeypatch.setattr(seed, "PROJECTS", projects)
    seed.seed(at=datetime.now(UTC))
    assert Project.objects.get(slug="one").least_isolation == accepted
