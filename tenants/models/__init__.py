"""Who may use how much, and who pays: one aggregate a file."""

from tenants.models.ledger import Charge, Rate, UsageInterval
from tenants.models.member import Member, Role
from tenants.models.project import Project
from tenants.models.quota import Quota
from tenants.models.request import Decision, QuotaRequest
from tenants.models.sign_in import SignInTally
from tenants.models.tenant import Tenant
from tenants.models.token import Scope, Token
from tenants.models.user import User

__all__ = [
    "Charge",
    "Decision",
    "Member",
    "Project",
    "Quota",
    "QuotaRequest",
    "Rate",
    "Role",
    "Scope",
    "SignInTally",
    "Tenant",
    "Token",
    "UsageInterval",
    "User",
]
