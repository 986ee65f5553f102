"""Service accounts for tests, without anybody who makes them."""

from itertools import count

from tenants.models import Project, Role, Tenant, User
from tests import factories

_numbers = count(1)


def service_account(of: Project | Tenant, role: Role = Role.MEMBER) -> User:
    place = {"service_project": of} if isinstance(of, Project) else {"service_tenant": of}
    name = f"service:{of.slug}:n{'x' * next(_numbers)}"
    account = User.objects.create(username=name, password="!", **place)
    factories.member(account, role, at=of)
    return account
