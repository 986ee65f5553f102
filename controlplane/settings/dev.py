"""For a developer's machine and the demo: plain HTTP on loopback."""

from controlplane.settings.base import *  # noqa: F403
from controlplane.settings.base import SECRET_KEY as _SECRET_KEY
from controlplane.settings.base import STORAGES

SECRET_KEY = _SECRET_KEY or "dev-only-key-that-never-leaves-this-machine-0123456789"
# Hashed names, but no compression: that takes a minute of the first start, for nobody's good.
STORAGES["staticfiles"] = {
    "BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
}
