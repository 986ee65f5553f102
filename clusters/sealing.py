"""A sealed box: whoever has the public key can close one, only who has the private key opens it.
Pure; what is sealed and where it lies is not known here.

A box is, in this order: a version (1 byte), the id of the key that opens it (16), a public key
made for this box alone (32), and the text under AES-256-GCM with its tag. The secret that X25519
makes of that key and the recipient's becomes, by HKDF-SHA256, a key of 32 bytes and a nonce of 12,
both used once. All that stands in front of the text, and the caller's `context`, is authenticated
with it.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

VERSION = 1
_ID, _KEY, _NONCE, _TAG = 16, 32, 12, 16
_HEAD = 1 + _ID + _KEY
SMALLEST = _HEAD + _TAG


class Unopened(Exception):
    """A box that can't be opened here; the message says why, without what is in it."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """X25519, 32 bytes."""

    raw: bytes

    def __post_init__(self) -> None:
        _check(self.raw)

    @property
    def id(self) -> bytes:
        return sha256(self.raw).digest()[:_ID]

    @property
    def text(self) -> str:
        """As a setting has it."""
        return b64encode(self.raw).decode()


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """X25519, 32 bytes."""

    raw: bytes = field(repr=False)

    @classmethod
    def fresh(cls) -> Self:
        return cls(X25519PrivateKey.generate().private_bytes_raw())

    def __post_init__(self) -> None:
        _check(self.raw)

    @property
    def public(self) -> PublicKey:
        own = X25519PrivateKey.from_private_bytes(self.raw)
        return PublicKey(own.public_key().public_bytes_raw())

    @property
    def text(self) -> str:
        """As of a public one; a secret."""
        return b64encode(self.raw).decode()


def seal(key: PublicKey, plain: bytes, *, context: bytes) -> bytes:
    """`context` says what the box is for, and has to be told again to open it."""
    own = X25519PrivateKey.generate()
    head = bytes([VERSION]) + key.id + own.public_key().public_bytes_raw()
    shared = own.exchange(X25519PublicKey.from_public_bytes(key.raw))
    cipher, nonce = _cipher(shared, head, key)
    return head + cipher.encrypt(nonce, plain, head + context)


def open_sealed(keys: Sequence[PrivateKey], box: bytes, *, context: bytes) -> bytes:
    """What is in it. Raises Unopened."""
    if len(box) < SMALLEST or box[0] != VERSION:
        raise Unopened(f"it is no sealed box of version {VERSION}")
    head = box[:_HEAD]
    key = next((key for key in keys if key.public.id == key_id(box)), None)
    if key is None:
        raise Unopened(f"this process has no key {key_id(box).hex()}")
    try:
        own = X25519PublicKey.from_public_bytes(head[-_KEY:])
        shared = X25519PrivateKey.from_private_bytes(key.raw).exchange(own)
        cipher, nonce = _cipher(shared, head, key.public)
        return cipher.decrypt(nonce, box[_HEAD:], head + context)
    except (InvalidTag, ValueError):  # ValueError: a public key that shares nothing
        raise Unopened("it was changed, or sealed for another place") from None


def key_id(box: bytes) -> bytes:
    """The id of the key that opens it."""
    return box[1 : 1 + _ID]


def _cipher(shared: bytes, head: bytes, key: PublicKey) -> tuple[AESGCM, bytes]:
    info = b"berth sealed box" + head + key.raw
    made = HKDF(algorithm=SHA256(), length=32 + _NONCE, salt=None, info=info).derive(shared)
    return AESGCM(made[:32]), made[32:]


def _check(raw: bytes) -> None:
    if len(raw) != _KEY:
        raise ValueError(f"a key of {_KEY} bytes is wanted, not {len(raw)}")
