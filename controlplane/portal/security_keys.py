"""Security keys and passkeys: what a browser is to ask of one, and whether its answer holds.

fido2 compares challenge, origin and host, and checks the signature; allauth keeps what is known of
a key, which is no secret. What must not live here: who has to have a key, and the pages.
"""

import json
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import AuthenticateWebAuthnForm
from allauth.mfa.webauthn.internal import auth
from allauth.mfa.webauthn.internal.auth import WebAuthn
from cryptography.exceptions import InvalidSignature
from django import forms
from django.core.exceptions import ValidationError
from fido2 import cbor
from fido2.cose import CoseKey
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import AttestationObject, AuthenticatorData

from controlplane.kernel import text
from controlplane.kernel.forms import StrictForm
from tenants.models import User

MOST = 10
"""Keys of one person."""
_MAX_NAME = 60
_MAX_ANSWER = 16 * 1024
"""Characters; a key's answer has about one thousand."""

type Options = Mapping[str, Any]  # Any: JSON values

_UNREADABLE = (
    ValueError, TypeError, LookupError, AttributeError, RecursionError, struct.error,
)  # fmt: skip
"""What fido2 raises of bytes that are no answer."""
_NOT_READ = "That is no answer of a security key. Try again."
_NOT_YOURS = "That is no key of yours, or this page was open too long. Try again."
_NOT_NEW = "The key did not answer what this page asked, or the page was open too long. Try again."


class Answer(forms.CharField):
    """What navigator.credentials gave, as JSON; its value has only what is checked and kept."""

    widget = forms.HiddenInput
    parts: tuple[str, ...] = ("clientDataJSON", "authenticatorData", "signature")

    def __init__(self) -> None:
        told = {"required": "The page has to ask a security key first.", "max_length": _NOT_READ}
        super().__init__(max_length=_MAX_ANSWER, error_messages=told)

    def clean(self, value: Any) -> dict[str, Any]:  # Any: as Django has it, and JSON values
        told = super().clean(value)
        try:
            return self.read(json.loads(told))
        except _UNREADABLE as error:
            raise ValidationError(_NOT_READ, "unreadable") from error

    def read(self, told: Any) -> dict[str, Any]:  # Any: JSON values
        """Raises one of _UNREADABLE for what is no answer of a key."""
        parts = {part: _bytes(told["response"][part]) for part in self.parts}
        raw_id = _bytes(told["rawId"])
        _check_client(parts["clientDataJSON"])
        self.check(raw_id, parts)
        response = {part: websafe_encode(value) for part, value in parts.items()}
        return {"rawId": websafe_encode(raw_id), "type": "public-key", "response": response}

    def check(self, raw_id: bytes, parts: Mapping[str, bytes]) -> None:
        AuthenticatorData(parts["authenticatorData"])


class NewAnswer(Answer):
    """Of a key that was asked to be one of somebody's."""

    parts = ("clientDataJSON", "attestationObject")

    def check(self, raw_id: bytes, parts: Mapping[str, bytes]) -> None:
        told = cbor.decode(parts["attestationObject"])
        if not isinstance(told, Mapping) or not isinstance(told["authData"], bytes):
            raise TypeError("authData is no bytes")  # of a number, bytes() makes as many zeros
        made = AttestationObject(parts["attestationObject"]).auth_data.credential_data
        if made is None or made.credential_id != raw_id:
            raise ValueError("no key")
        if made.public_key[3] not in CoseKey.supported_algorithms():
            raise ValueError("an algorithm that was not asked for")
        with suppress(InvalidSignature):  # as it has to be; of no key's numbers another error
            made.public_key.verify(b"", b"")


class NewKey(StrictForm):
    """A key and what its owner calls it."""

    name = forms.CharField(max_length=_MAX_NAME, help_text="Such as the one on your key ring.")
    credential = NewAnswer()

    def __init__(self, *args: Any, user: User) -> None:  # Any: as Django has it
        super().__init__(*args)
        self.user = user

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if fault := text.fault(name):
            raise ValidationError(f"{fault}; a name can't have it.")
        return name

    def clean_credential(self) -> dict[str, Any]:  # Any: JSON values
        found: dict[str, Any] = self.cleaned_data["credential"]
        try:
            made = auth.complete_registration(found)
        except ValidationError as error:
            raise ValidationError(_NOT_NEW, "wrong") from error
        known = auth.get_credentials(self.user)
        if any(each.credential_id == made.credential_data.credential_id for each in known):
            raise ValidationError("That key is yours already.", "known")
        if len(known) >= MOST:
            raise ValidationError(f"You have {MOST} keys; remove one first.", "too-many")
        return found

    def save(self) -> Authenticator:
        name, credential = self.cleaned_data["name"], self.cleaned_data["credential"]
        made: Authenticator = WebAuthn.add(self.user, name, credential).instance
        return made


class Proof(AuthenticateWebAuthnForm, StrictForm):
    """That whoever asks has one of the person's keys in hand."""

    credential = Answer()

    def clean_credential(self) -> Authenticator:
        try:
            found: Authenticator = super().clean_credential()
        except ValidationError as error:
            if error.code != "incorrect_code":  # tried too often
                raise
            raise ValidationError(_NOT_YOURS, "wrong") from error
        return found


class ProofAgain(Proof):
    """By who is signed in."""

    reauthenticated = True


def to_add(user: User) -> Options:
    """What the browser is to ask of a new key; the session has the challenge."""
    found: Options = auth.begin_registration(user, passwordless=False)
    return found


def to_prove(user: User) -> Options:
    """What the browser is to ask of one that is there; the session has the challenge."""
    found: Options = auth.begin_authentication(user)
    return found


def _bytes(told: object) -> bytes:
    """Raises TypeError and ValueError for what is no base64."""
    if not isinstance(told, str):
        raise TypeError("no text")
    return websafe_decode(told)


def _check_client(told: bytes) -> None:
    """What the browser had signed. Of a number fido2 would make a challenge of as many bytes."""
    client = json.loads(told)
    for name in ("type", "challenge", "origin"):
        if not isinstance(client[name], str):
            raise TypeError(f"{name} is no text")
