"""For the test suite."""

from controlplane.settings.base import *  # noqa: F403
from controlplane.settings.base import DATABASES, STORAGES

SECRET_KEY = "only-for-tests-0123456789-0123456789-0123456789-0123"  # noqa: S105
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DATABASES["default"]["OPTIONS"].pop("pool")  # one connection a test, rolled back at its end
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_AUTOREFRESH = True  # no collected files in tests
