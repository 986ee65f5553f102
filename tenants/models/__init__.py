"""Who may use how much, and who pays: one aggregate a file."""

from tenants.models.approval import MAX_AFTER_DAYS, ApprovalRule, Outcome, RequestStep
from tenants.models.budget import MAX_BUDGET_H, Budget, BudgetMode, Period
from tenants.models.channel import TOLD, Channel, ChannelKind
from tenants.models.delegation import LONGEST_DELEGATION, Delegation
from tenants.models.gate import GateKind, StandingGate
from tenants.models.grant import Grant
from tenants.models.group_role import MAX_GROUP, GroupRole, Role
from tenants.models.ledger import Charge, Rate, UsageInterval
from tenants.models.member import Member
from tenants.models.notice import OF_BUDGETS, OF_REVIEWS, OF_WORK, Delivery, Event, Notice
from tenants.models.past import PastUse
from tenants.models.policy import SubmitPolicy
from tenants.models.preferred import MAX_PREFERRED, PreferredFlavor
from tenants.models.project import CAPS, MAX_CAP, Project
from tenants.models.quota import Quota, TenantQuota
from tenants.models.request import Decision, QuotaRequest
from tenants.models.reservation import LONGEST_WEEKLY, NEVER, WEEK, Reservation
from tenants.models.session import MAX_AGENT, UserSession
from tenants.models.sign_in import SignInTally
from tenants.models.tenant import MAX_IDLE_TIMEOUT_S, MAX_MIN_RUN_TIME_S, Tenant
from tenants.models.token import Scope, Token
from tenants.models.user import SERVICE, User

__all__ = [
    "CAPS",
    "LONGEST_DELEGATION",
    "LONGEST_WEEKLY",
    "MAX_AFTER_DAYS",
    "MAX_AGENT",
    "MAX_BUDGET_H",
    "MAX_CAP",
    "MAX_GROUP",
    "MAX_IDLE_TIMEOUT_S",
    "MAX_MIN_RUN_TIME_S",
    "MAX_PREFERRED",
    "NEVER",
    "OF_BUDGETS",
    "OF_REVIEWS",
    "OF_WORK",
    "SERVICE",
    "TOLD",
    "WEEK",
    "ApprovalRule",
    "Budget",
    "BudgetMode",
    "Channel",
    "ChannelKind",
    "Charge",
    "Decision",
    "Delegation",
    "Delivery",
    "Event",
    "GateKind",
    "Grant",
    "GroupRole",
    "Member",
    "Notice",
    "Outcome",
    "PastUse",
    "Period",
    "PreferredFlavor",
    "Project",
    "Quota",
    "QuotaRequest",
    "Rate",
    "RequestStep",
    "Reservation",
    "Role",
    "Scope",
    "SignInTally",
    "StandingGate",
    "SubmitPolicy",
    "Tenant",
    "TenantQuota",
    "Token",
    "UsageInterval",
    "User",
    "UserSession",
]
