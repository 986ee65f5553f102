"""What a username may be: ASCII, and no other user's may read like it."""

from django.core.exceptions import ValidationError

from controlplane.kernel.errors import Conflict, Invalid
from tenants import naming
from tenants.models import User


def check_name(username: str) -> None:
    """Raises Invalid for what is no username."""
    try:
        User._meta.get_field("username").clean(username, None)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), pointer="/username") from error


def check_unlike(username: str) -> None:
    """Raises Conflict where there is a user of that name, or of one that reads like it."""
    if other := alike(username):
        told = "of that name already" if other == username else f"{other!r}, which reads like it"
        raise Conflict(f"There is a user {told}: take another.", pointer="/username")


def alike(username: str) -> str | None:
    """Whose name reads like it, or is it."""
    same = User.objects.filter(username=username).exists()
    read = naming.reading(username)
    found = (
        User.objects.alias(read=User.READING).filter(read=read).values_list("username", flat=True)
    )
    return username if same else found.first()
