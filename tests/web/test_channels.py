"""/channels, and those of each tenant and project: the form, the list, test and removal."""

from datetime import timedelta

import pytest
from django.urls import reverse

from controlplane.kernel.throttle import Throttle
from tenants.models import Channel, Delivery
from tenants.services import channels
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse

CANARY = "canary-in-an-address"
ASKED = {
    "name": "Chat",
    "kind": "json",
    "url": f"https://hooks.example/{CANARY}",
    "events": ["request.opened"],
}


def of_detection(cast: Cast) -> str:
    return reverse("project-channels", args=[cast.detection.id])


def test_a_channel_is_made_shown_tried_and_removed(browse: Browse, cast: Cast) -> None:
    client = browse(cast.ada)
    answer = client.post(of_detection(cast), ASKED, headers=HTMX)
    assert answer.status_code == 201
    assert "Copy its secret now" in answer.content.decode()
    assert "berth_hook_" in answer.content.decode()
    channel = Channel.objects.get()
    page = client.get(of_detection(cast)).content.decode()
    assert "json to hooks.example" in page
    assert "berth_hook_" not in page
    assert CANARY not in page
    answer = client.post(reverse("channel-test", args=[channel.id]))
    assert (answer.status_code, answer["Location"]) == (303, of_detection(cast))
    Delivery.objects.update(error="It answered 500.")
    assert "It answered 500." in client.get(of_detection(cast)).content.decode()
    assert client.post(reverse("channel-remove", args=[channel.id])).status_code == 303
    assert not Channel.objects.exists()


def test_who_tries_too_often_is_told_until_when(
    browse: Browse, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "TRIED", Throttle(most=1, window=timedelta(minutes=1)))
    client = browse(cast.ada)
    client.post(of_detection(cast), ASKED)
    url = reverse("channel-test", args=[Channel.objects.get().id])
    pages = [client.post(url, follow=True).content.decode() for _ in range(2)]
    told = ("A test goes to Chat", "At most 1 of these in 60 s")
    assert [[words in page for words in told] for page in pages] == [[True, False], [False, True]]
    assert Delivery.objects.count() == 1


def test_one_of_slacks_kind_has_no_secret_to_copy(browse: Browse, cast: Cast) -> None:
    answer = browse(cast.ada).post(of_detection(cast), ASKED | {"kind": "slack"})
    assert answer.status_code == 201
    assert "Copy its secret" not in answer.content.decode()


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("url", "http://hooks.example/", "https://host/path is wanted"),
        ("events", [], "Choose at least one."),
        ("name", "a\u202eb", "not accepted in a name"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_kept(
    browse: Browse, cast: Cast, field: str, value: object, why: str
) -> None:
    answer = browse(cast.ada).post(of_detection(cast), ASKED | {field: value})
    assert answer.status_code == 422
    assert why in " ".join(answer.context["form"].errors[field])
    assert not Channel.objects.exists()


def test_a_name_that_is_there_is_said(browse: Browse, cast: Cast) -> None:
    client = browse(cast.ada)
    client.post(of_detection(cast), ASKED)
    answer = client.post(of_detection(cast), ASKED)
    assert "There is a channel Chat already." in answer.context["form"].errors["name"]


def test_only_who_may_sees_them(browse: Browse, cast: Cast) -> None:
    assert browse(cast.ben).get(of_detection(cast)).status_code == 403
    assert browse(cast.cleo).get(of_detection(cast)).status_code == 404
    assert browse(cast.ada).get(reverse("channels")).status_code == 403
    assert browse(cast.oz).get(reverse("channels")).status_code == 200
    for user, shown in ((cast.ada, True), (cast.ben, False)):
        page = browse(user).get(reverse("project-detail", args=[cast.detection.id]))
        assert (of_detection(cast) in page.content.decode()) == shown
