"""What `manage.py check --deploy` says of how people sign in."""

from typing import Any

from django.conf import settings
from django.core.checks import Tags, Warning, register

from tenants.models import Role

_ASKED = (Role.APPROVER, Role.OPERATOR)


@register(Tags.security, deploy=True)
def second_factor(**_: Any) -> list[Warning]:  # Any: Django's
    """Whether those decide who signed in with a password alone."""
    without = [role for role in _ASKED if role not in settings.BERTH_MFA_ROLES]
    if not without:
        return []
    told = f"Of the roles {' and '.join(without)} no second factor is asked."
    return [Warning(told, hint='Set BERTH_MFA_ROLES="approver operator".', id="berth.W001")]
