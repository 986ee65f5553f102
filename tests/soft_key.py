"""A security key made of software, with the browser that asks it: answers as
navigator.credentials does, and lies where it is told to."""

import json
import struct
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from uuid import uuid4

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2.cose import ES256, CoseKey
from fido2.utils import websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
)

HOST = "testserver"
FLAG = AuthenticatorData.FLAG

type Asked = Mapping[str, Any]  # Any: JSON values


class SoftKey:
    """Of one host, whatever it is asked. What it tells of its public key is at `fault`."""

    def __init__(self, *, host: str = HOST, fault: str = "") -> None:
        self.id = uuid4().bytes
        self.host, self.fault = host, fault
        self._private = ec.generate_private_key(ec.SECP256R1())

    def create(self, asked: str, **lies: Any) -> str:
        """The answer to what a page asks of a new key; `lies` stand in the client data."""
        options: Asked = json.loads(asked)["publicKey"]
        numbers = self._private.public_key().public_numbers()
        curve = {-1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
        public = CoseKey({1: 2, 3: ES256.ALGORITHM} | curve | self._faults())
        made = AttestedCredentialData.create(Aaguid.NONE, self.id, public)
        data = self._data(FLAG.UP | FLAG.AT, made)
        attested = AttestationObject.create("none", data, {})
        client = self._client("webauthn.create", options, lies)
        return self.answer({"clientDataJSON": client, "attestationObject": attested})

    def get(self, asked: str, *, flags: FLAG = FLAG.UP, **lies: Any) -> str:
        """The answer to what a page asks of a key that is there."""
        options: Asked = json.loads(asked)["publicKey"]
        client = self._client("webauthn.get", options, lies)
        data = self._data(flags)
        signed = self._private.sign(data + sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return self.answer(
            {"clientDataJSON": client, "authenticatorData": data, "signature": signed}
        )

    def answer(self, parts: Mapping[str, bytes]) -> str:
        name = websafe_encode(self.id)
        told = {
            "id": name,
            "rawId": name,
            "type": "public-key",
            "response": {part: websafe_encode(value) for part, value in parts.items()},
            "clientExtensionResults": {},
        }
        return json.dumps(told)

    def _faults(self) -> dict[int, Any]:  # Any: what stands in a key
        x = b"\x01" * 32  # of no point of the curve, with that y
        faults: dict[str, dict[int, Any]] = {
            "algorithm": {3: -65535},
            "point": {-2: x},
            "size": {-2: 10**9},
        }
        return faults.get(self.fault, {})

    def _client(self, kind: str, options: Asked, lies: Asked) -> bytes:
        told = {"type": kind, "challenge": options["challenge"], "origin": f"https://{HOST}"}
        return json.dumps({**told, **lies}).encode()

    def _data(self, flags: FLAG, made: bytes = b"") -> AuthenticatorData:
        host = sha256(self.host.encode()).digest()
        return AuthenticatorData(host + struct.pack(">BI", flags, 0) + made)
