"""Every setting of an installation, read from the environment. The table in README.md is made of
these names.

What must not live here: secrets with a usable default, logic, anything read from a file in the
tree.
"""

import os
import sys
from pathlib import Path

from django.utils.csp import CSP

from controlplane.settings import oidc, saml
from controlplane.settings.env import (
    choice,
    database,
    flag,
    hosts,
    integer,
    keys,
    levels,
    mailers,
    namespaced,
    networks,
    origin,
    reachable,
    words,
)
from controlplane.settings.providers import by_name

BASE_DIR = Path(__file__).resolve().parents[2]

# --- identity and web ---
SECRET_KEY = os.environ.get("BERTH_SECRET_KEY", "")
DEBUG = False
ALLOWED_HOSTS = words("BERTH_ALLOWED_HOSTS", "localhost 127.0.0.1")
CSRF_TRUSTED_ORIGINS = words("BERTH_TRUSTED_ORIGINS", "")
ROOT_URLCONF = "controlplane.urls"
ASGI_APPLICATION = "controlplane.asgi.application"
AUTH_USER_MODEL = "tenants.User"
AUTHENTICATION_BACKENDS = ["controlplane.portal.people.People"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
BERTH_PUBLIC_URL = origin("BERTH_PUBLIC_URL")
# Whom people sign in by, besides a password.
BERTH_PROVIDERS = by_name(
    oidc.providers("BERTH_OIDC"), saml.providers("BERTH_SAML", here=BERTH_PUBLIC_URL)
)
ACCOUNT_ADAPTER = "controlplane.portal.people.SignedIn"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_UNIQUE_EMAIL = False  # an address says nothing of who somebody is
ACCOUNT_LOGIN_METHODS = {"username"}
BERTH_PASSWORDS = flag("BERTH_PASSWORDS", default=True)  # else the break-glass user's alone
# Roles whose people set up a second factor before anything else; others may.
BERTH_MFA_ROLES = frozenset(words("BERTH_MFA_ROLES", ""))
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300  # seconds in which a proof lets one change a second factor
MFA_ADAPTER = "controlplane.portal.second_factor.Factors"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_FORMS = {"authenticate_webauthn": "controlplane.portal.security_keys.Proof"}
MFA_WEBAUTHN_USER_VERIFICATION = "discouraged"  # no PIN: a password or a provider came first
MFA_TOTP_ISSUER = "Berth"
MFA_TOTP_TOLERANCE = 1  # codes of the half minute before and after: clocks differ
SOCIALACCOUNT_ADAPTER = "controlplane.portal.providers.Providers"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = integer("BERTH_SESSION_S", 12 * 3600)
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024  # reliability 4.6: bodies up to 1 MiB
# A file may be a credential: it stays in memory, and none is larger than a body may be.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
FILE_UPLOAD_MAX_MEMORY_SIZE = DATA_UPLOAD_MAX_MEMORY_SIZE

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.mfa",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "controlplane",
    "controlplane.audit",
    "controlplane.api",
    "clusters",
    "tenants",
    "scheduler",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "controlplane.portal.signed_in.listed",
    "controlplane.portal.second_factor.required",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "controlplane.portal.context.shell",
            ]
        },
    }
]
SECURE_CSP = {
    "default-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "style-src": [CSP.SELF],
    "script-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "object-src": [CSP.NONE],
    "base-uri": [CSP.NONE],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"

# --- data ---
DATABASES = {"default": database("DATABASE_URL", "postgresql:///berth")}
# Codes that were used and how often one was tried, for all processes alike.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "berth_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},  # above it some that still count would go
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
STATIC_URL = "static/"
STATIC_ROOT = Path(os.environ.get("BERTH_STATIC_ROOT", BASE_DIR / "staticfiles"))
STATICFILES_DIRS = [BASE_DIR / "controlplane" / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# --- time and language ---
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

# --- logs: to standard error, one line an event ---
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {
        "handlers": ["stderr"],
        "level": os.environ.get("BERTH_LOG_LEVEL", "INFO"),
    },
}

# --- Celery: reliability 4.5 says why each value is what it is ---
CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL", REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 120}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_SOFT_TIME_LIMIT = 20
CELERY_TASK_TIME_LIMIT = 30
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TIMEZONE = "UTC"
CELERY_ENABLE_UTC = True
CELERY_TASK_DEFAULT_QUEUE = "default"
# Around each task Celery would close the pool of connections, and each task begin with a new one:
# a session that knows no table and has planned nothing. celery.py gives connections back instead.
CELERY_DB_REUSE_MAX = sys.maxsize

# --- Berth ---
BERTH_PREFIX = os.environ.get("BERTH_PREFIX", "berth.dev")  # labels, annotations, scheduling gate
BERTH_INSTALLATION = os.environ.get("BERTH_INSTALLATION", "berth")  # whose pods are ours
BERTH_MIG_CONFIG = namespaced("BERTH_MIG_CONFIG", "gpu-operator/berth-mig-config")
# Of the pod that looks whether it sees devices that it never asked for: it needs a shell.
BERTH_EXPOSURE_IMAGE = os.environ.get("BERTH_EXPOSURE_IMAGE", "docker.io/library/busybox:1.37")
# Where nodes stand, the outermost level first. Spine and leaf are Topograph's labels, the clique
# is the GPU operator's: the nodes that share NVLink, such as those of a GB200 NVL72.
BERTH_TOPOLOGY_LEVELS = levels(
    "BERTH_TOPOLOGY_LEVELS",
    "zone=topology.kubernetes.io/zone block=network.topology.nvidia.com/spine"
    " rack=network.topology.nvidia.com/leaf nvlink=nvidia.com/gpu.clique"
    " node=kubernetes.io/hostname",
)
# Every process seals cluster credentials by the first, the public key; only dispatch workers and
# the watcher are told the second, and open them.
BERTH_SEAL_KEY = (keys("BERTH_SEAL_KEY", most=1) or [b""])[0]
BERTH_OPEN_KEYS = keys("BERTH_OPEN_KEYS", most=10)
BERTH_CLUSTER_NETWORKS = networks("BERTH_CLUSTER_NETWORKS")  # where clusters are; none: anywhere
BERTH_EGRESS_NETWORKS = reachable(networks("BERTH_EGRESS_NETWORKS"))  # by projects' pods
# Where Berth's own parts are: no cluster is there, unless that list has just their addresses.
OWN_HOSTS = hosts(DATABASES["default"]["HOST"], REDIS_URL, CELERY_BROKER_URL)
# What people are told: from whom, by which mail server, and where Berth is for who reads it.
MAILERS = mailers("BERTH_EMAIL_URL")  # none: nobody gets mail
SILENCED_SYSTEM_CHECKS = ["mail.W001"]  # that there is none
DEFAULT_FROM_EMAIL = os.environ.get("BERTH_EMAIL_FROM", "berth@localhost")
# Where webhooks may lead besides public addresses, and whether without TLS, for a try.
BERTH_WEBHOOK_NETWORKS = networks("BERTH_WEBHOOK_NETWORKS")
BERTH_WEBHOOK_HTTP = flag("BERTH_WEBHOOK_HTTP", default=False)
BERTH_CURRENCY = os.environ.get("BERTH_CURRENCY", "EUR")
BERTH_CYCLE_S = integer("BERTH_CYCLE_S", 2)  # the periodic scheduling cycle, in seconds
BERTH_LEASE_S = integer("BERTH_LEASE_S", 15)
BERTH_CLAIM_S = integer("BERTH_CLAIM_S", 15)  # a dead dispatcher's work is taken over after it
BERTH_START_S = integer("BERTH_START_S", 1800, low=0)  # to run in; 0: for ever
BERTH_POD_RETENTION_S = integer("BERTH_POD_RETENTION_S", 3600)  # how long ended pods are kept
BERTH_METER_S = integer("BERTH_METER_S", 60)  # how often usage becomes charges
BERTH_HALF_LIFE_DAYS = integer("BERTH_HALF_LIFE_DAYS", 7, low=0, high=365)  # of past use, 0: none
BERTH_MIN_RUN_TIME_S = integer("BERTH_MIN_RUN_TIME_S", 0, low=0, high=86_400)  # before eviction
# After how long unused its devices are taken from work, 0: never, and how long before it is told.
BERTH_IDLE_TIMEOUT_S = integer("BERTH_IDLE_TIMEOUT_S", 0, low=0, high=30 * 86_400)
BERTH_IDLE_WARNING_S = integer("BERTH_IDLE_WARNING_S", 600, low=0, high=30 * 86_400)
BERTH_REVIEW_DAYS = integer("BERTH_REVIEW_DAYS", 0, low=0, high=3660)  # of quotas; 0: never
BERTH_IDLE_PERCENT = integer("BERTH_IDLE_PERCENT", 5, low=1, high=100)  # used less is unused
BERTH_USE_S = integer("BERTH_USE_S", 60, high=120)  # how often clusters are asked for use
BERTH_RESERVATION_HORIZON_S = integer("BERTH_RESERVATION_HORIZON_S", 86_400, low=0)
BERTH_GUARD_S = integer("BERTH_GUARD_S", 1800, low=0)  # waited so long, room is kept; 0: never
BERTH_KEPT_FOR = integer("BERTH_KEPT_FOR", 1, low=1, high=100)  # for how many at once
BERTH_RECUT = choice("BERTH_RECUT", "propose", "off", "auto")  # of nodes, for slices that wait
# Work that one cycle may lose by moving work to make room, in seconds of a GPU; 0: none is moved.
BERTH_CONSOLIDATION_BUDGET_S = integer("BERTH_CONSOLIDATION_BUDGET_S", 3600, low=0)
BERTH_FORECAST_S = integer("BERTH_FORECAST_S", 60)  # how often wait estimates are made
BERTH_STANDING_S = integer("BERTH_STANDING_S", 2, low=0)  # how long a process keeps shares
BERTH_INVARIANTS_S = integer("BERTH_INVARIANTS_S", 300)  # how often the promises are checked
# Inputs of cycles, kept to be planned again: how much of them, 0 is none, and how often at most.
BERTH_INPUTS_MIB = integer("BERTH_INPUTS_MIB", 512, low=0)
BERTH_INPUTS_S = integer("BERTH_INPUTS_S", 2, low=0)
BERTH_INPUTS_HOLDS_S = integer("BERTH_INPUTS_HOLDS_S", 10, low=0)  # where nothing starts or stops
BERTH_DEMO = flag("BERTH_DEMO", default=False)
# The demo's known password is no password anywhere else: only its own hasher can check it.
PASSWORD_HASHERS = [
    *(["controlplane.demo.hashers.DemoHasher"] if BERTH_DEMO else []),
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "controlplane.api.auth.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["controlplane.api.render.OrjsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["controlplane.api.render.OrjsonParser"],
    "EXCEPTION_HANDLER": "controlplane.api.errors.problem",
    "DEFAULT_PAGINATION_CLASS": "controlplane.api.pagination.Keyset",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Berth API",
    "DESCRIPTION": "Tenants, quotas, clusters, workloads and spend of shared GPUs.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "WorkloadState": "scheduler.core.lifecycle.State",
        "ClusterState": "clusters.web.serializers.CLUSTER_STATES",
        "Isolation": "clusters.web.serializers.ISOLATIONS",
        "ExposureVerdict": "clusters.web.serializers.EXPOSURE_VERDICTS",
        "CapacityType": "clusters.web.serializers.CAPACITIES",
        "FlavorKind": "clusters.web.serializers.FLAVOR_KINDS",
        "Verdict": "clusters.web.serializers.VERDICTS",
        "OperationKind": "scheduler.web.details.OPERATION_KINDS",
        "ReasonCode": "scheduler.web.meanings.CODES",
        "FailureClass": "scheduler.web.terms.CLASSES",
        "RetriedClass": "scheduler.web.terms.RETRIED",
        "BudgetMode": "tenants.web.budget_api.MODES",
        "ChannelKind": "tenants.web.channel_api.KINDS",
        "PriorityClass": "tenants.policy.PRIORITY_CLASSES",
        "QueueState": "tenants.web.serializers.QUEUE_STATES",
        "Role": "tenants.web.serializers.ROLES",
        "RuleLevel": "tenants.web.approval_api.LEVELS",
        "StepLevel": "tenants.web.request_serializers.LEVELS",
        "StepState": "tenants.web.request_serializers.STATES",
        "DelegationState": "tenants.web.delegation_api.STATES",
        "WorkMode": "scheduler.web.comparisons.MODES",
        "TopologyMode": "scheduler.web.topologies.TOPOLOGY_MODES",
        "GateKind": "tenants.gating.KINDS",
        "GateState": "scheduler.web.gate_input.STATES",
        "DependencyKind": "scheduler.services.specs.AFTER",
    },
}
