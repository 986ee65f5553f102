"""Idle limits and idle work over the API, and what a bad body is told."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from rest_framework.test import APIClient

from clusters.models import Cluster
from scheduler.core.lifecycle import State
from scheduler.models import Idleness, Placement
from tenants.models import Project, User
from tests import factories
from tests.api.test_bad_input import refused
from tests.conftest import Cast, Unchanged
from tests.factories import AT

type Api = Callable[[User | None], APIClient]
type Json = dict[str, Any]  # Any: JSON values

SAID = {"idle_timeout_s": 3600, "idle_warning_s": 600}


def test_a_limit_is_set_and_inherited(api: Api, cast: Cast) -> None:
    project, tenant = f"/api/v1/projects/{cast.detection.id}", f"/api/v1/tenants/{cast.vision.id}"

    def seen() -> tuple[int | None, int, int]:
        found = api(cast.ben).get(project).json()
        names = ("idle_timeout_s", "idle_timeout_in_force_s", "idle_warning_in_force_s")
        own, timeout_s, warning_s = (found[name] for name in names)
        return own, timeout_s, warning_s

    assert seen() == (None, 0, 600)
    made = api(cast.oz).post(f"{tenant}/idle-limit", SAID, format="json")
    assert (made.status_code, made.json() | SAID) == (200, made.json())
    assert seen() == (None, 3600, 600)
    less = {"idle_timeout_s": 60, "idle_warning_s": 0}
    made = api(cast.oz).post(f"{project}/idle-limit", less, format="json")
    assert (made.status_code, made.json() | less) == (200, made.json())
    assert seen() == (60, 60, 0)
    never = {"idle_timeout_s": 0, "idle_warning_s": 0}
    answer = api(cast.oz).post(f"{project}/idle-limit", never, format="json")
    assert refused(answer) == [("/idle_timeout_s", "looser")]
    assert seen() == (60, 60, 0)
    api(cast.oz).post(f"{project}/idle-limit", dict.fromkeys(SAID), format="json")
    assert seen() == (None, 3600, 600)
    rule = {"rule": "idle_timeout_s", "value": 3600, "by": "Vision Lab"}
    for place in (project, tenant):
        assert api(cast.ada).get(f"{place}/policy").json()["in_force"] == [rule]
    Project.objects.filter(id=cast.detection.id).update(idle_timeout_s=7200, idle_warning_s=0)
    assert seen() == (7200, 3600, 600)


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({}, "/idle_timeout_s", "required"),
        (SAID | {"idle_timeout_s": -1}, "/idle_timeout_s", "min-value"),
        (SAID | {"idle_timeout_s": 2_592_001}, "/idle_timeout_s", "max-value"),
        (SAID | {"idle_timeout_s": "3600"}, "/idle_timeout_s", "wrong-type"),
        (SAID | {"idle_warning_s": 1.0}, "/idle_warning_s", "wrong-type"),
        (SAID | {"idle_warning_s": 3601}, "/idle_warning_s", "out-of-range"),
        (SAID | {"idle_warning_s": None}, "/idle_warning_s", "invalid"),
    ],
)
def test_a_limit_that_is_none_changes_nothing(
    api: Api, cast: Cast, nothing_stored: Unchanged, body: Json, pointer: str, code: str
) -> None:
    for url in (f"projects/{cast.detection.id}", f"tenants/{cast.vision.id}"):
        with nothing_stored():
            answer = api(cast.oz).post(f"/api/v1/{url}/idle-limit", body, format="json")
        assert (pointer, code) in refused(answer)
    assert Project.objects.get(id=cast.detection.id).idle_timeout_s is None


def test_work_that_is_idle_says_so_and_when_it_is_freed(api: Api, cast: Cast) -> None:
    flavor, cluster = factories.flavor(), factories.cluster()
    row = factories.workload(cast.detection, cast.ben, [flavor], state=State.RUNNING)
    attempt = row.attempts.create(number=1, cluster=cluster, epoch=1, created_at=AT)
    Placement.objects.create(
        workload=row, attempt=attempt, pod_set=row.pod_sets.get(), rank=0, flavor=flavor,
        node=factories.node(cluster, "n1"), amount_milli=2000, cpu_milli=1, memory_mib=1,
        pod_name="p", created_at=AT,
    )  # fmt: skip
    Idleness.objects.create(attempt=attempt, since=AT)
    token = factories.token(cast.oz)

    def idle() -> Json | None:
        found: Json | None = api(cast.ben).get(f"/api/v1/workloads/{row.id}").json()["idle"]
        return found

    def metric() -> list[str]:
        text = APIClient(headers=factories.bearer(token)).get("/metrics").content.decode()
        return [line for line in text.splitlines() if line.startswith("berth_idle_devices{")]

    assert (idle(), metric()) == (None, [])
    Cluster.objects.update(use_seen_at=Now())
    told = {"since": "2030", "devices_milli": 2000, "warned_at": None, "frees_at": None}
    assert (found := idle()) is not None
    assert found | {"since": found["since"][:4]} == told | {"since": f"{AT:%Y}"}
    assert metric() == [f'berth_idle_devices{{project="{cast.detection.id}"}} 2.0']
    Project.objects.update(**SAID)
    assert (found := idle()) is not None
    assert found["frees_at"][:19] == f"{AT + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}"
