"""The secrets of one throw-away control plane: a signing key, bearer tokens and kubeconfigs."""

import base64
import json
import secrets
from collections.abc import Mapping
from pathlib import Path

# DER of the SEC 1 EC private key: SEQUENCE { 1, OCTET STRING (32 bytes), [0] prime256v1 }.
_EC_KEY_HEAD = bytes.fromhex("30310201010420")
_EC_KEY_TAIL = bytes.fromhex("a00a06082a8648ce3d030107")


def ec_private_key_pem() -> str:
    """A fresh P-256 private key. The reader derives the public half, so no library is needed."""
    scalar = b"\x00" + secrets.token_bytes(31)  # below the order of the curve, whatever the rest
    der = _EC_KEY_HEAD + scalar + _EC_KEY_TAIL
    body = base64.encodebytes(der).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{body}-----END EC PRIVATE KEY-----\n"


def write_tokens(path: Path, groups: Mapping[str, str]) -> dict[str, str]:
    """Write the API server's token file, `groups` by user name; return the token of each user."""
    tokens = {user: secrets.token_urlsafe(32) for user in groups}
    lines = [f'{tokens[user]},{user},{user},"{group}"\n' for user, group in groups.items()]
    path.write_text("".join(lines))
    return tokens


def write_kubeconfig(path: Path, server: str, ca_file: Path, token: str) -> None:
    """Write a kubeconfig (JSON is YAML) for one server and one token."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [
            {"name": "it", "cluster": {"server": server, "certificate-authority": str(ca_file)}}
        ],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    path.write_text(json.dumps(config))
