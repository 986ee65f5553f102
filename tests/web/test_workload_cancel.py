"""/workloads/<id>/cancel: by plain POST, by those who may, once."""

import pytest
from django.urls import reverse

from controlplane.audit.models import AuditEvent
from scheduler.core.lifecycle import State
from scheduler.models import Workload
from tenants.models import Role
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop


def url(workload: Workload) -> str:
    return reverse("workload-cancel", args=[workload.id])


def test_waiting_work_is_cancelled_at_once(browse: Browse, cast: Cast, shop: Shop) -> None:
    client = browse(cast.ben)
    answer = client.post(url(shop.waiting), follow=True)
    assert answer.redirect_chain == [(reverse("workload-detail", args=[shop.waiting.id]), 303)]
    assert "Cancelled sweep." in answer.content.decode()
    shop.waiting.refresh_from_db()
    assert shop.waiting.state == State.CANCELLED
    assert AuditEvent.objects.filter(target_id=shop.waiting.id, action="workload.state").exists()


def test_running_work_is_stopped_first(browse: Browse, cast: Cast, shop: Shop) -> None:
    browse(cast.ben).post(url(shop.running))
    shop.running.refresh_from_db()
    assert shop.running.state == State.CANCELLING
    page = browse(cast.ben).get(reverse("workload-detail", args=[shop.running.id]))
    assert "Cancel workload" not in page.content.decode()


def test_htmx_is_told_where_to_go(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).post(url(shop.waiting), headers=HTMX)
    assert answer.headers["HX-Redirect"] == reverse("workload-detail", args=[shop.waiting.id])


def test_it_rejects_get(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert browse(cast.ben).get(url(shop.waiting)).status_code == 405


@pytest.mark.parametrize(("who", "status"), [("ada", 303), ("oz", 303), ("vik", 403),
                                             ("pia", 403), ("cleo", 404)])  # fmt: skip
def test_roles(browse: Browse, cast: Cast, shop: Shop, who: str, status: int) -> None:
    answer = browse(getattr(cast, who)).post(url(shop.waiting))
    assert answer.status_code == status
    shop.waiting.refresh_from_db()
    assert shop.waiting.state == (State.CANCELLED if status == 303 else State.PENDING)
    if status == 403:
        assert "Only its submitter, an owner or an operator" in answer.content.decode()


def test_another_member_may_not(browse: Browse, cast: Cast, shop: Shop) -> None:
    eve = factories.user("eve")
    factories.member(eve, Role.MEMBER, at=cast.detection)
    assert browse(eve).post(url(shop.waiting)).status_code == 403


def test_twice_is_told_and_changes_nothing(browse: Browse, cast: Cast, shop: Shop) -> None:
    client = browse(cast.ben)
    client.post(url(shop.waiting))
    events = AuditEvent.objects.count()
    again = client.post(url(shop.waiting))
    assert again.status_code == 409
    assert "has ended already" in again.content.decode()
    assert AuditEvent.objects.count() == events
