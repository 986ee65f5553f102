"""`manage.py bootstrap`: an empty installation gets a tenant and somebody who makes the rest."""

import io
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from clusters.models import Cluster
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict
from scheduler.models import Workload
from tenants.models import Member, Quota, Role, Tenant, User
from tenants.services import bootstrap
from tests import factories
from tests.scheduler.meanwhile import meanwhile

type Run = Callable[..., str]

PASSWORD = "correct horse battery"


@pytest.fixture
def run(db: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*, password: str = PASSWORD, **changed: str) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{password}\nnot read\n"))
        named = {"organisation": "Vision Lab", "slug": "vision", "username": "ada"} | changed
        out = io.StringIO()
        call_command("bootstrap", *[f"--{k}={v}" for k, v in named.items()], stdout=out)
        return out.getvalue()

    return run


def test_it_makes_the_root_tenant_and_its_first_person(run: Run) -> None:
    assert "ada owns" in run()
    tenant, user = Tenant.objects.get(), User.objects.get()
    assert (tenant.name, tenant.slug, tenant.parent) == ("Vision Lab", "vision", None)
    assert user.check_password(PASSWORD)
    held = Member.objects.filter(user=user, tenant=None, project=None)
    assert {row.role for row in held} == {Role.OWNER, Role.OPERATOR, Role.APPROVER}
    rows = AuditEvent.objects.order_by("id")
    assert [(row.action, row.actor, row.after.get("role")) for row in rows] == [
        ("tenant.create", "system:bootstrap", None),
        ("user.create", "system:bootstrap", None),
        ("member.grant", "system:bootstrap", "owner"),
        ("member.grant", "system:bootstrap", "operator"),
        ("member.grant", "system:bootstrap", "approver"),
    ]
    assert PASSWORD not in str(list(rows.values("after")))


def test_again_it_changes_nothing_and_asks_nothing(run: Run) -> None:
    run()
    before = User.objects.values_list("password", flat=True).get()
    assert "nothing to do" in run(password="")
    assert User.objects.values_list("password", flat=True).get() == before
    assert AuditEvent.objects.count() == 5


@pytest.mark.parametrize(
    "changed", [{"username": "eve"}, {"slug": "other"}, {"organisation": "Other"}]
)
def test_it_refuses_a_fleet_that_has_an_owner(run: Run, changed: dict[str, str]) -> None:
    run()
    with pytest.raises(CommandError, match="has an owner already"):
        run(**changed)
    assert (Tenant.objects.count(), User.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"organisation": " "}, "organisation: "),
        ({"organisation": "Vi\u200bsion"}, r"organisation: U\+200B"),
        ({"slug": "-x"}, "slug: "),
        ({"username": "a b"}, "username: "),
        ({"username": ""}, "username: "),
        ({"password": ""}, "password: "),
        ({"password": "short"}, "password: "),
        ({"password": "123456789012"}, "password: "),
        ({"slug": "taken"}, "slug: There is a tenant"),
        ({"username": "ben"}, "username: There is a user"),
    ],
)
def test_it_says_what_it_can_not_use(run: Run, changed: dict[str, str], why: str) -> None:
    factories.tenant("Taken")
    factories.user("ben")
    with pytest.raises(CommandError, match=why):
        run(**changed)
    assert not Member.objects.exists()
    assert not AuditEvent.objects.exists()
    assert (Tenant.objects.count(), User.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_begins() -> None:
    def begin(name: str) -> None:
        wanted = bootstrap.Beginning(organisation=name, slug=name, username=name)
        bootstrap.bootstrap(wanted=wanted, password=PASSWORD, at=factories.AT)

    late = meanwhile(lambda: begin("vision"), lambda: begin("speech"))
    assert isinstance(late.exception(), Conflict)
    assert (Tenant.objects.get().slug, User.objects.get().username) == ("vision", "vision")


def client(username: str) -> APIClient:
    made = APIClient()
    made.force_login(User.objects.get(username=username))
    return made


def test_from_there_an_installation_is_set_up_through_the_api(run: Run) -> None:
    """Each step by somebody whom the one before made: no row is written by hand but accounts."""
    run()
    factories.user("ben")
    factories.user("pia")
    ada, ben, pia = (client(name) for name in ("ada", "ben", "pia"))
    tenant = str(Tenant.objects.get().id)

    def post(by: APIClient, path: str, body: dict[str, object], status: int = 201) -> str:
        answer = by.post(f"/api/v1/{path}", body, format="json")
        assert answer.status_code == status, answer.content
        return str(answer.json().get("id"))

    post(ada, "clusters", {"name": "north", "region": "eu"})
    post(ada, "flavors", {"name": "h100-80gb", "kind": "whole", "model": "NVIDIA-H100-80GB-HBM3"})
    project = post(ada, "projects", {"tenant": tenant, "name": "Detection", "slug": "detection"})
    post(ada, "members", {"user": "pia", "role": "approver", "tenant": tenant})
    post(ada, "members", {"user": "ben", "role": "member", "project": project})
    wish = {"project": project, "flavor": "h100-80gb", "nominal_milli": 8000, "reason": "Work."}
    request = post(ben, "quota-requests", wish)
    post(pia, f"quota-requests/{request}/grant", {"version": 1, "quota_version": 0}, 200)
    assert Quota.objects.get().nominal_milli == 8000
    factories.node(Cluster.objects.get())
    body = factories.submission(Quota.objects.get().project)
    post(ben, "workloads", body)
    assert Workload.objects.get().submitted_by.username == "ben"
