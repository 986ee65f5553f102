"""What a username may be, and which of them read alike."""

from importlib import import_module

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from controlplane.kernel.errors import Conflict, Invalid
from tenants import naming
from tenants.models import User
from tenants.services import users
from tests import factories
from tests.conftest import Cast

ALLOWED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@.+-_"


class Reading(TestCase):
    @example("R-N")
    @example("rrnn")
    @given(st.text(ALLOWED, min_size=1, max_size=12))
    def test_the_database_reads_a_name_as_people_do(self, name: str) -> None:
        factories.user(name)
        read = User.objects.values_list(User.READING, flat=True).get(username=name)
        assert read == naming.reading(name)


@pytest.mark.parametrize(
    "name", ["", "b en", "bеn", "ben\n", "ｂｅｎ", "a:b", "x" * 151, "be\u200bn"]
)
def test_what_is_no_username_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        users.check_name(name)
    assert refused.value.pointer == "/username"


@pytest.mark.parametrize("name", ["ben", "ada.l@example.org", "A-b_c+1"])
def test_what_is_one_goes(db: None, name: str) -> None:
    users.check_name(name)
    users.check_unlike(name)


@pytest.mark.parametrize(
    ("name", "other"),
    [("ben", "Ben"), ("ben", "BEN"), ("ben", "b-e-n"), ("ben", "be_n"), ("amo", "arno")],
)
def test_a_name_that_reads_like_anothers_is_refused(db: None, name: str, other: str) -> None:
    factories.user(name)
    with pytest.raises(Conflict, match=f"'{name}', which reads like it"):
        users.check_unlike(other)


def test_an_upgrade_names_those_who_read_alike_by_now(db: None) -> None:
    refuse_alike = import_module("tenants.migrations.0055_rn_reads_like_m").refuse_alike
    with connection.schema_editor() as editor:
        refuse_alike(None, editor)
        editor.execute("DROP INDEX user_name_reads_once")
        for name in ("amo", "arno", "mia", "rnia", "ben"):
            factories.user(name)
        with pytest.raises(RuntimeError, match="on: amo, arno; mia, rnia"):
            refuse_alike(None, editor)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bеn", "Enter a valid username"),
        ("B3n", ""),
        ("b-e-n", "reads like"),
        ("ben", "of that name"),
    ],
)
def test_the_back_office_says_so_too(cast: Cast, name: str, told: str) -> None:
    client = Client()
    client.force_login(factories.user("root", is_superuser=True, is_staff=True))
    sent = {"username": name, "password1": "correct horse", "password2": "correct horse"}
    answer = client.post(reverse("admin:tenants_user_add"), sent | {"usable_password": "true"})
    assert (answer.status_code == 302) == (told == "")
    assert told in answer.content.decode()
    assert User.objects.filter(username=name).exists() == (told == "" or name == "ben")
