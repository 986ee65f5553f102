"""What each page costs in queries with a lively installation behind it: written down, and no more.

After a change that is meant: BERTH_WRITE_QUERY_COUNTS=1 pytest tests/web/test_page_queries.py -n 0
"""

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from clusters.models import Flavor
from controlplane.kernel import clock
from controlplane.portal import signed_in
from tests import factories
from tests.browser import scene
from tests.service_accounts import service_account
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
@pytest.mark.usefixtures("one_moment")
def test_pages_cost_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed_in, "_EVERY", timedelta(days=1))  # told as seen by the first page
    shown = scene.build(at=clock.now())
    detection, ben = shown.projects["Detection"], shown.people["ben"]
    h100 = Flavor.objects.get(name="h100-80gb")
    factories.reservation(detection.tenant, h100, shown.people["oz"])
    array = factories.array(detection, ben, [h100], 40)
    urls = {
        "home": reverse("home"),
        "workload-list": reverse("workload-list"),
        "workload-detail running": reverse("workload-detail", args=[shown.running.id]),
        "workload-detail waiting": reverse("workload-detail", args=[shown.waiting.id]),
        "pod-inspection": reverse(
            "pod-inspection", args=[shown.running.id, shown.running.placements.earliest("id").id]
        ),
        "array-detail": reverse("array-detail", args=[array.id]),
        "workload-explanation": reverse("workload-explanation", args=[shown.waiting.id]),
        "workload-submit": reverse("workload-submit"),
        "queue": reverse("queue"),
        "spend": reverse("spend"),
        "audit-list": reverse("audit-list"),
        "tenant-list": reverse("tenant-list"),
        "tenant-detail": reverse("tenant-detail", args=[detection.tenant_id]),
        "project-people": reverse("project-people", args=[shown.projects["Detection"].id]),
        "project-policy": reverse("project-policy", args=[shown.projects["Detection"].id]),
        "cluster-list": reverse("cluster-list"),
        "cluster-detail": reverse("cluster-detail", args=["north"]),
        "quota-list": reverse("quota-list"),
        "project-detail": reverse("project-detail", args=[shown.projects["Detection"].id]),
        "budget-list": reverse("budget-list"),
        "reservation-list": reverse("reservation-list"),
        "rate-list": reverse("rate-list"),
        "request-new": reverse("request-new"),
        "request-list": reverse("request-list"),
        "approval-rule-list": reverse("approval-rule-list"),
        "delegation-list": reverse("delegation-list"),
        "token-list": reverse("token-list"),
        "second-factor": reverse("second-factor"),
        "session-list": reverse("session-list"),
        "mail": reverse("mail"),
        "group-role-list": reverse("group-role-list"),
    }
    operators = {
        "account-list": reverse("account-list"),
        "project-replay": reverse("project-replay", args=[shown.projects["Detection"].id]),
        "cluster-list": urls["cluster-list"],
        "cluster-detail": urls["cluster-detail"],
        "cluster-register": reverse("cluster-register"),
        "cluster-manifest": reverse("cluster-manifest-page", args=["north"]),
        "cluster-credential": reverse("cluster-credential-page", args=["north"]),
        "cluster-connection": reverse("cluster-connection", args=["north"]),
        "channels": reverse("channels"),
        "project-channels": reverse("project-channels", args=[shown.projects["Detection"].id]),
    }
    account = service_account(detection)
    for _ in range(3):
        factories.token(account, made_by=shown.people["ada"])
        service_account(detection)
    owners = {
        "project-service-accounts": reverse("project-service-accounts", args=[detection.id]),
        "service-account": reverse("service-account", args=[account.id]),
        "project-tokens": reverse("project-tokens", args=[detection.id]),
    }
    found = {}
    by_whom = (("ben", urls), ("pia", urls), ("oz", operators), ("ada", owners))
    for who, pages in by_whom:
        client = Client()
        client.force_login(shown.people[who])
        for name, url in pages.items():
            found[f"{name}, {who}"] = counted(client, url)
            found[f"{name}, {who}, poll"] = counted(client, url, **HTMX)
    if WRITE:
        FILE.write_text(json.dumps(found, indent=2) + "\n")
    assert found == json.loads(FILE.read_text())
    assert max(found.values()) <= 30
