"""The password hash of the demo's users, which no installation without BERTH_DEMO=1 accepts.

What must not live here: anything the login of a real installation uses.
"""

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher


class DemoHasher(PBKDF2PasswordHasher):
    """Few rounds, because the password is public; it only keeps demo users out of real sites.

    It has to come first in PASSWORD_HASHERS: Django re-hashes with the first at a login, and any
    other would make the demo's password good everywhere.
    """

    algorithm = "berth_demo"
    iterations = 1000

    def verify(self, password: str, encoded: str) -> bool:
        return bool(settings.BERTH_DEMO) and super().verify(password, encoded)
