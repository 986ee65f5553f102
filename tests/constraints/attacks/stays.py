"""Moving projects and tenants with live work to where it was never counted."""

from scheduler.models import Workload
from tenants.models import Project, Tenant
from tests.constraints.attack import Attack
from tests.constraints.moves import Statement, update
from tests.constraints.rows import make


def _project() -> Statement:
    work = make(Workload)
    return update(work.project, tenant_id=make(Tenant).pk)


def _department() -> Statement:
    top = make(Tenant)
    middle = make(Tenant, parent=top)
    make(Workload, project=make(Project, tenant=make(Tenant, parent=middle)))
    return update(middle, parent_id=None)


ATTACKS = (
    Attack("project_with_live_work_stays", "a project takes its live work along", _project),
    Attack("tenant_with_live_work_stays", "a department takes live work along", _department),
)
