"""The API's description is complete, and what the API really takes and gives is what it says."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types
from rest_framework.test import APIClient

from clusters.models import Flavor
from controlplane.api.fields import Integer
from controlplane.api.problems import KINDS
from scheduler.core.reasons import ReasonCode
from scheduler.web import submission
from scheduler.web.serializers import BatchIn, PodSetIn, SpecIn, WorkloadIn
from tenants.models import User
from tests import factories
from tests.api.access_table import API
from tests.api.test_access_matrix import API_ROOT, ask, path_of
from tests.api.world import COLUMNS, World

type Json = Any  # JSON values
type Api = Callable[[User | None], APIClient]


def documented(document: Json) -> dict[tuple[str, str], Json]:
    return {
        (method.upper(), path): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }


def test_each_reason_for_waiting_is_documented_with_its_meaning(document: Json) -> None:
    schemas = document["components"]["schemas"]
    assert set(schemas["ReasonCode"]["enum"]) == set(ReasonCode)
    told = schemas["ReasonOut"]["properties"]["code"]["description"]
    assert re.findall(r"^\* `([a-z-]+)`: [A-Z].+\.$", told, re.MULTILINE) == list(ReasonCode)


def plain(route: str) -> str:
    """`workloads/<uuid:id>` as the description writes it."""
    for kind in ("uuid", "slug"):
        route = route.replace(f"<{kind}:", "{")
    return f"/{API_ROOT}{route}".replace(">", "}")


def valid(instance: Json, schema: Json, document: Json) -> None:
    whole = schema | {"components": document["components"]}
    faults = list(Draft202012Validator(whole).iter_errors(instance))
    assert not faults, [f"{fault.json_path}: {fault.message}" for fault in faults]


def test_every_endpoint_is_described_and_nothing_else(document: Json) -> None:
    told = set(documented(document))
    real = {(method, plain(route)) for method, route in API if route not in {"schema", "docs"}}
    assert told == real


def test_it_is_openapi_3_1(document: Json) -> None:
    assert document["openapi"] == "3.1.0"


@pytest.mark.parametrize(("method", "route"), sorted(API))
def test_answers_are_what_the_description_says(
    method: str, route: str, world: World, document: Json
) -> None:
    if route in {"schema", "docs"}:
        return
    row = API[method, route]
    operation = documented(document)[method, plain(route)]
    for column in COLUMNS:
        url = path_of(f"{API_ROOT}{route}", row, world)
        answer = ask(world.clients[column], method, url, row, world)
        told = operation["responses"].get(str(answer.status_code))
        assert told is not None, f"{answer.status_code} is not described"
        if answer.status_code == 204:
            continue
        kind = answer["Content-Type"].partition(";")[0]
        text = kind in {"application/yaml", "text/csv"}
        body = answer.content.decode() if text else json.loads(answer.content)
        valid(body, told["content"][kind]["schema"], document)


def test_a_queue_with_rows_is_what_the_description_says(world: World, document: Json) -> None:
    cast, flavor = world.cast, Flavor.objects.get()
    reason = {"code": "behind", "numbers": {"ahead_count": 1}, "text": "One is ahead."}
    row = factories.workload(
        cast.segmentation, cast.ada, [flavor], reason=reason, reason_at=factories.AT
    )
    factories.estimate(row)
    owner = world.clients["owner"]
    answer = json.loads(owner.get(f"/api/v1/queues/{cast.segmentation.id}").content)
    assert len(answer["items"]) == 1
    path = "/api/v1/queues/{project_id}"
    told = documented(document)["GET", path]["responses"]["200"]
    valid(answer, told["content"]["application/json"]["schema"], document)


def test_the_parser_takes_exactly_the_described_fields() -> None:
    assert set(SpecIn().fields) == submission.WORKLOAD_FIELDS
    assert set(PodSetIn().fields) == submission.POD_SET_FIELDS
    assert set(WorkloadIn().fields) == {*submission.WORKLOAD_FIELDS, "project"}
    assert set(BatchIn().fields) == {"project", "workloads"}


def bounds() -> Iterator[tuple[str, str, int, int]]:
    for serializer in (SpecIn(), PodSetIn()):
        for name, field in serializer.fields.items():
            if isinstance(field, Integer):
                assert field.min_value is not None
                assert field.max_value is not None
                yield type(serializer).__name__, name, int(field.min_value), int(field.max_value)


@pytest.mark.parametrize(("where", "name", "low", "high"), list(bounds()))
def test_the_parser_has_the_described_bounds(where: str, name: str, low: int, high: int) -> None:
    pod_set = {
        "name": "main", "cpu_milli": 1, "memory_mib": 1, "gpu_count": 1, "flavors": ["x"],
        "image": "x",
    }  # fmt: skip
    if name == "min_count":
        pod_set["count"] = high
    pointer = f"/{name}" if where == "SpecIn" else f"/pod_sets/0/{name}"
    for value in (low - 1, low, high, high + 1):
        body: Json = {"name": "x", "pod_sets": [pod_set]}
        (body if where == "SpecIn" else body["pod_sets"][0])[name] = value
        _, found = submission.read(body)
        refused = "out-of-range" in {fault.code for fault in found if fault.pointer == pointer}
        assert refused == (not low <= value <= high), value


def test_every_kind_of_problem_has_a_page_that_says_what_to_do(api: Api, db: None) -> None:
    for code, kind in KINDS.items():
        answer = api(None).get(f"/api/v1/problems/{code}")
        assert answer.json() == {
            "type": f"/api/v1/problems/{code}", "title": kind.title, "fix": kind.fix,
        }  # fmt: skip


def test_the_docs_page_needs_no_looser_policy(world: World) -> None:
    answer = world.clients["member"].get("/api/v1/docs")
    html = answer.content.decode()
    assert "<style" not in html
    assert "style=" not in html
    assert html.count("<script") == html.count("<script src=") == 3
    assert "unsafe-inline" not in answer["Content-Security-Policy"]
    assert "http" not in html.replace("http-equiv", "")
    script = world.clients["member"].get("/api/v1/docs?script=")
    assert script["Content-Type"].startswith("application/javascript")
    assert b"/api/v1/schema" in script.content
