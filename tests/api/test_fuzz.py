"""What the description of the API permits, and what it does not, sent to each endpoint by somebody
who may do everything: no answer is an error of Berth's, and each is one that is described.

The parts of an address name things that are there, so that what is sent beside it comes to matter.
"""

import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core import NOT_SET

from controlplane.kernel.throttle import Throttle
from scheduler.services import asking
from tenants.models import Role
from tests import factories
from tests.api.access_table import API
from tests.api.test_access_matrix import API_ROOT, path_of
from tests.api.test_schema import documented, plain
from tests.api.world import World

type Json = Any  # JSON values

CASES = 20
"""Of each operation."""
FUZZED = sorted((method, route) for method, route in API if route not in {"schema", "docs"})


@pytest.fixture
def root(world: World, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Has each role in the whole fleet, and is never asked to wait."""
    monkeypatch.setattr(asking, "ASKED", Throttle(most=10**6, window=timedelta(minutes=1)))
    user = factories.user("root")
    for role in Role:
        factories.member(user, role)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def send(
    client: Client, method: str, url: str, case: Case[Any]
) -> Any:  # Any: as Django's client answers
    """What a case has beside its address; nothing of it is kept."""
    query = urlencode(case.query or {}, doseq=True)
    body = b"" if case.body is NOT_SET else json.dumps(case.body, default=str).encode()
    headers = {
        name: value
        for name, value in (case.headers or {}).items()
        if name.lower() == "idempotency-key" and str(value).isascii() and str(value).isprintable()
    }
    with transaction.atomic():
        answer = client.generic(
            method, f"{url}?{query}", body, content_type="application/json", headers=headers
        )
        transaction.set_rollback(True)
    return answer


@pytest.mark.parametrize(("method", "route"), FUZZED)
def test_no_input_is_an_error_of_berths(
    method: str, route: str, world: World, root: Client, document: Json
) -> None:
    told = documented(document)[method, plain(route)]
    url = path_of(f"{API_ROOT}{route}", API[method, route], world).partition("?")[0]
    operation = schemathesis.openapi.from_dict(document)[plain(route)][method]
    permitted = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    cases = permitted
    if told.get("parameters") or told.get("requestBody"):
        refused = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
        cases = st.one_of(permitted, refused)

    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def each(case: Case[Any]) -> None:
        answer = send(root, method, url, case)
        said = f"{method} {url} {case.query} {case.body!r}: {answer.content[:300]!r}"
        assert answer.status_code < 500, said
        assert str(answer.status_code) in told["responses"], said

    each()
