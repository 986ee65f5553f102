"""For the test suite."""

import base64

from controlplane.settings.base import *  # noqa: F403
from controlplane.settings.base import DATABASES, STORAGES
from controlplane.settings.env import networks

SECRET_KEY = "only-for-tests-0123456789-0123456789-0123456789-0123"  # noqa: S105
# A pair that opens nothing but what tests seal.
BERTH_SEAL_KEY = base64.b64decode("/UU7XbyALxKPwCIYQ8JBASJcR/02qCXObaKHpmxPKh4=")
BERTH_OPEN_KEYS = [base64.b64decode("sJVUrotcbXXlMw9/9vizV1iPW6/t22p0MVt/dhoJ8mY=")]
MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DATABASES["default"]["OPTIONS"].pop("pool")  # one connection a test, rolled back at its end
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_AUTOREFRESH = True  # no collected files in tests
BERTH_CLUSTER_NETWORKS = networks("BERTH_CLUSTER_NETWORKS", "127.0.0.1 ::1")  # the simulator's
BERTH_STANDING_S = 0  # a test that changes who uses what sees it at once
