"""What an approver saw of a grant's effect before deciding: bound to what it was worked out on,
and no older than a few minutes when it is decided. Signed, for it goes through their browser."""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Self
from uuid import UUID

import orjson
from django.core import signing

from controlplane.kernel.errors import Conflict, Invalid

LIVES = timedelta(minutes=10)
_SALT = "berth.previews"


class StalePreview(Conflict):
    default_code = "stale-preview"


@dataclass(frozen=True, slots=True, kw_only=True)
class Previewed:
    """The SHA-256 of all that was shown, to which user, when that was worked out, and of what: a
    request and a quota at these versions, 0 for none, and what of it would be granted."""

    digest: str
    shown_to: UUID
    as_of: datetime
    request: UUID
    version: int
    quota_version: int
    nominal_milli: int

    @classmethod
    def of(
        cls,
        shown: object,
        *,
        shown_to: UUID,
        as_of: datetime,
        request: UUID,
        version: int,
        quota_version: int,
        nominal_milli: int,
    ) -> Self:
        """Of what is `shown`: dataclasses, and values that JSON has, or decimals."""
        options = orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z
        content = orjson.dumps(shown, default=str, option=options)
        return cls(
            digest=sha256(content).hexdigest(),
            shown_to=shown_to,
            as_of=as_of,
            request=request,
            version=version,
            quota_version=quota_version,
            nominal_milli=nominal_milli,
        )

    def sign(self) -> str:
        told = asdict(self) | {
            "shown_to": str(self.shown_to),
            "as_of": self.as_of.isoformat(),
            "request": str(self.request),
        }
        return signing.dumps(told, salt=_SALT, compress=True)

    def check(
        self,
        *,
        by: UUID,
        request: UUID,
        version: int,
        quota_version: int,
        nominal_milli: int,
        at: datetime,
    ) -> None:
        """Before a user decides by it. Raises StalePreview where it was shown to another, is older
        than LIVES, or not of this."""
        if self.shown_to != by:
            raise StalePreview("The preview was shown to somebody else: look at it yourself.")
        if at - self.as_of > LIVES:
            minutes = int(LIVES.total_seconds()) // 60
            raise StalePreview(f"The preview is older than {minutes} minutes: look at it again.")
        if self.request != request or self.version != version:
            raise StalePreview("The request has changed since the preview: look at it again.")
        if self.quota_version != quota_version:
            raise StalePreview("The quota has changed since the preview: look at it again.")
        if self.nominal_milli != nominal_milli:
            raise StalePreview("The preview is of another amount: look at that of this one.")


def read(text: str, *, pointer: str = "/preview") -> Previewed:
    """What `sign` wrote. Raises Invalid for anything else."""
    try:
        told: dict[str, Any] = signing.loads(text, salt=_SALT)  # Any: as `sign` has it
    except signing.BadSignature as error:
        message = "This is no preview that Berth gave."
        raise Invalid(message, pointer=pointer, code="invalid") from error
    told["as_of"] = datetime.fromisoformat(told["as_of"])
    told["shown_to"], told["request"] = UUID(told["shown_to"]), UUID(told["request"])
    return Previewed(**told)
