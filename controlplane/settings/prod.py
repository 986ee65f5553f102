"""For a real installation behind TLS; `manage.py check --deploy` has to be clean with it
and with BERTH_MFA_ROLES set."""

from django.core.exceptions import ImproperlyConfigured

from controlplane.settings.base import *  # noqa: F403
from controlplane.settings.base import SECRET_KEY as _SECRET_KEY

if len(_SECRET_KEY) < 50:
    raise ImproperlyConfigured("BERTH_SECRET_KEY has to be set to at least 50 random characters.")
SECURE_SSL_REDIRECT = True
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # probes speak plain HTTP to the container
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = 365 * 24 * 3600
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
