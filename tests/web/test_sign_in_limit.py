"""How often one may try to sign in: by name and by address, over all processes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from controlplane.kernel import clock
from tenants.models import SignInTally
from tenants.services import sign_in
from tests import factories
from tests.conftest import Cast

URL = reverse("login")


def try_in(
    name: str, password: str, *, address: str = "192.0.2.1", client: Client | None = None
) -> int:
    """The status of one try."""
    sent = {"username": name, "password": password}
    return (client or Client()).post(URL, sent, REMOTE_ADDR=address).status_code


def addresses() -> Iterator[str]:
    return (f"198.51.100.{n}" for n in range(1, 255))


def test_a_name_has_a_hundred_tries_from_anywhere(cast: Cast) -> None:
    where = addresses()
    for _ in range(sign_in.PER_NAME):
        assert try_in("ben", "wrong", address=next(where)) == 422
    client = Client()
    answer = client.post(URL, {"username": "ben", "password": "ben"}, REMOTE_ADDR=next(where))
    assert answer.status_code == 429
    assert 800 < int(answer.headers["Retry-After"]) <= 900
    page = answer.content.decode()
    assert "Too many tries. The next one may be in 1" in page
    assert "not even the right password is looked at" in page
    assert "_auth_user_id" not in client.session
    assert try_in("cleo", "cleo", address=next(where)) == 302


def test_nobody_locks_another_out_from_one_address(cast: Cast) -> None:
    for _ in range(sign_in.PER_NAME_HERE):
        assert try_in("ben", "wrong") == 422
    for _ in range(sign_in.PER_NAME):
        assert try_in("ben", "ben") == 429
    assert try_in("ben", "ben", address="192.0.2.9") == 302


def test_spellings_of_one_name_share_its_tries(cast: Cast) -> None:
    spellings = (
        "ben",
        "BEN",
        "Ｂen",
        "bEn",
        " ben",
        "ben  ",
        "ben\t",
        "\u3000ben",
        "\nben ",
        "beN",
    )
    assert len(spellings) == sign_in.PER_NAME_HERE
    for name in spellings:
        assert try_in(name, "wrong") == 422
    for name in spellings:
        assert try_in(name, "ben") == 429


def test_what_is_longer_than_any_name_is_counted_by_its_beginning(cast: Cast) -> None:
    statuses = [try_in("n" * 150 + f"{number}", "wrong") for number in range(11)]
    assert statuses == [422] * sign_in.PER_NAME_HERE + [429]


def test_a_name_that_nobody_has_is_answered_alike(cast: Cast) -> None:
    statuses = [try_in("nobody", "wrong") for _ in range(sign_in.PER_NAME_HERE + 1)]
    assert statuses == [422] * sign_in.PER_NAME_HERE + [429]


@pytest.mark.parametrize(
    ("first", "same", "other"),
    [
        ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
        ("2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "::ffff:192.0.2.2"),
    ],
)
def test_an_address_has_fifty_tries_of_any_names(
    cast: Cast, first: str, same: str, other: str
) -> None:
    for number in range(sign_in.PER_ADDRESS):
        assert try_in(f"name{number}", "wrong", address=first) == 422
    assert try_in("ben", "ben", address=same) == 429
    assert try_in("ben", "ben", address=other) == 302


def test_an_address_that_is_out_of_tries_locks_no_name_out(cast: Cast) -> None:
    for number in range(sign_in.PER_ADDRESS):
        try_in(f"name{number}", "wrong")
    for _ in range(sign_in.PER_NAME + 1):
        assert try_in("ben", "wrong") == 429
    assert try_in("ben", "ben", address="192.0.2.2") == 302


def test_a_whole_institute_signs_in_behind_one_address(cast: Cast) -> None:
    for _ in range(sign_in.PER_ADDRESS + 5):
        assert try_in("ben", "ben") == 302
    assert list(SignInTally.objects.values_list("count", flat=True)) == [0]


def test_success_frees_the_name_and_only_its_own_try_of_the_address(cast: Cast) -> None:
    for _ in range(sign_in.PER_NAME_HERE - 1):
        try_in("ben", "wrong")
    assert try_in("ben", "ben") == 302
    for _ in range(sign_in.PER_NAME_HERE):
        assert try_in("ben", "wrong") == 422
    assert try_in("ben", "wrong") == 429
    assert SignInTally.objects.order_by("-count")[0].count == 2 * sign_in.PER_NAME_HERE


def test_after_the_window_it_may_go_on_and_the_old_rows_are_gone(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(sign_in.PER_NAME_HERE + 1):
        try_in("ben", "wrong", address=f"192.0.2.{number + 1}")
    later: datetime = clock.now() + sign_in.WINDOW
    monkeypatch.setattr(clock, "now", lambda: later)
    assert try_in("ben", "ben", address="192.0.2.200") == 302
    assert SignInTally.objects.count() == 1


def test_a_refused_try_does_not_make_the_wait_longer(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "now", lambda: factories.AT)
    for _ in range(sign_in.PER_NAME_HERE):
        try_in("ben", "wrong")
    monkeypatch.setattr(clock, "now", lambda: factories.AT + timedelta(minutes=10))
    for _ in range(2):
        answer = Client().post(URL, {"username": "ben", "password": "x"}, REMOTE_ADDR="192.0.2.1")
        assert answer.headers["Retry-After"] == "300"
        assert "in 5 min;" in answer.content.decode()


def test_no_name_and_no_address_is_stored(cast: Cast) -> None:
    try_in("hunter2-typed-as-a-name", "wrong")
    stored = repr(list(SignInTally.objects.values()))
    assert "hunter2" not in stored
    assert "192.0.2.1" not in stored


@pytest.mark.django_db(transaction=True)
def test_tries_at_the_same_time_are_all_counted() -> None:
    def one(number: int) -> bool:
        try:
            at = clock.now()
            address = f"2001:db8::{number:x}"  # one subscriber
            return sign_in.take_try(name="ben", address=address, at=at) is None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        permitted = list(threads.map(one, range(40)))
    assert permitted.count(True) == sign_in.PER_NAME_HERE


def test_the_back_office_has_no_door_of_its_own(cast: Cast) -> None:
    client = Client()
    door = reverse("admin:login")
    answer = client.get(door, {"next": "/admin/tenants/user/"})
    assert answer.headers["Location"] == f"{URL}?next=/admin/tenants/user/"
    assert client.post(door, {"username": "ben", "password": "ben"}).status_code == 405
    client.force_login(cast.ben)
    assert client.get(reverse("admin:index"), follow=True).status_code == 403


def test_staff_come_to_the_back_office_by_it(cast: Cast) -> None:
    factories.user("sue", is_staff=True)
    client = Client()
    asked = client.get(reverse("admin:index"), follow=True)
    [*_, (address, _)] = asked.redirect_chain
    answer = client.post(address, {"username": "sue", "password": "sue"}, follow=True)
    assert answer.redirect_chain == [(reverse("admin:index"), 302)]
    assert answer.status_code == 200
