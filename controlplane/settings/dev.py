"""For a developer's machine and the demo: plain HTTP on loopback."""

from controlplane.settings.base import *  # noqa: F403
from controlplane.settings.base import SECRET_KEY as _SECRET_KEY

SECRET_KEY = _SECRET_KEY or "dev-only-key-that-never-leaves-this-machine-0123456789"
