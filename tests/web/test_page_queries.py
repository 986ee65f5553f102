"""What each page costs in queries with a lively installation behind it: written down, and no more.

After a change that is meant: BERTH_WRITE_QUERY_COUNTS=1 pytest tests/web/test_page_queries.py -n 0
"""

import json
import os
from pathlib import Path

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.kernel import clock
from tests.browser import scene
from tests.web import lively_pages
from tests.web.conftest import HTMX

FILE = Path(__file__).with_name("query_counts.json")
WRITE = os.environ.get("BERTH_WRITE_QUERY_COUNTS") == "1"


def counted(client: Client, url: str, **headers: str) -> int:
    client.get(url, headers=headers)  # what is read once a process is not counted
    ContentType.objects.clear_cache()
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url, headers=headers).status_code == 200
    return len(queries)


@pytest.mark.django_db
@pytest.mark.usefixtures("one_moment", "seen_once")
def test_pages_cost_what_is_written() -> None:
    shown = scene.build(at=clock.now())
    found = {}
    for who, pages in lively_pages.by_person(shown).items():
        client = Client()
        client.force_login(shown.people[who])
        for name, url in pages.items():
            found[f"{name}, {who}"] = counted(client, url)
            found[f"{name}, {who}, poll"] = counted(client, url, **HTMX)
    if WRITE:
        FILE.write_text(json.dumps(found, indent=2) + "\n")
    assert found == json.loads(FILE.read_text())
    assert max(found.values()) <= 30
