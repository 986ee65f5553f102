"""A kubeconfig -> the credential in it. Pure, and the only reader of kubeconfigs.

Who follows a kubeconfig runs the programs and reads the files that it names, so no more than five
values are taken: a server, its authority, and a token or a client certificate with its key.
Everything else is refused by its place. A refusal never quotes what stands in the text, not even
an unknown name: a secret may have slipped there.
"""

import base64
import binascii

from clusters import credential
from clusters.credential import BadCredential, ClientCertificate, Credential
from controlplane.kernel import document
from controlplane.kernel.document import Node

_NO_PROGRAM = "Berth runs no programs; give a bound token"
_NO_FILE = "Berth reads no files that a kubeconfig names; put the contents into "
_NO_OTHER = "Berth acts under its own name alone; leave it out"
_REFUSED = {
    "exec": _NO_PROGRAM,
    "auth-provider": _NO_PROGRAM,
    "tokenFile": f"{_NO_FILE}token",
    "certificate-authority": f"{_NO_FILE}certificate-authority-data",
    "client-certificate": f"{_NO_FILE}client-certificate-data",
    "client-key": f"{_NO_FILE}client-key-data",
    "username": "a bound token is wanted, not a password",
    "password": "a bound token is wanted, not a password",
    "as": _NO_OTHER,
    "as-uid": _NO_OTHER,
    "as-groups": _NO_OTHER,
    "as-user-extra": _NO_OTHER,
    "proxy-url": "Berth talks to a cluster directly; leave it out",
    "insecure-skip-tls-verify": "a server is always checked; leave it out, and give its authority",
    "tls-server-name": "a server is checked by the name in its URL; leave it out",
    "disable-compression": "leave it out",
    "namespace": "Berth makes namespaces of its own; leave it out",
    "extensions": "leave them out",
}


def parse(text: str) -> Credential:
    """Raises BadCredential, whose `where` is a line and a path."""
    try:
        root = document.load(text.encode(errors="surrogatepass"))
    except document.Refused as refused:
        first = refused.refusals[0]
        # What PyYAML says of a mistake quotes the place.
        why = "not YAML" if first.why.startswith("not YAML") else first.why
        raise BadCredential(f"line {first.line}", why) from None
    fields = _fields(
        root,
        needed=("apiVersion", "kind", "clusters", "contexts", "current-context", "users"),
        allowed=("preferences",),
    )
    _constant(fields["apiVersion"], "v1")
    _constant(fields["kind"], "Config")
    if "preferences" in fields:
        _fields(fields["preferences"], needed=())
    cluster_name, cluster = _one(fields["clusters"], "cluster")
    user_name, user = _one(fields["users"], "user")
    context_name, context = _one(fields["contexts"], "context")
    named = _fields(context, needed=("cluster", "user"))
    _same(fields["current-context"], context_name, "the context")
    _same(named["cluster"], cluster_name, "the cluster")
    _same(named["user"], user_name, "the user")
    reached = _fields(cluster, needed=("server",), allowed=("certificate-authority-data",))
    authority = reached.get("certificate-authority-data")
    return Credential(
        server=_server(reached["server"]),
        ca_pem=credential.ca(_decoded(authority), _where(authority)) if authority else None,
        identity=_identity(user),
    )


def _identity(user: Node) -> str | ClientCertificate:
    pair = ("client-certificate-data", "client-key-data")
    fields = _fields(user, needed=(), allowed=("token", *pair))
    if "token" in fields and len(fields) == 1:
        return credential.token(_text(fields["token"]), _where(fields["token"]))
    if set(fields) != set(pair):
        raise _refusal(user, f"either token or {' and '.join(pair)} are wanted")
    certificate, key = (fields[name] for name in pair)
    return ClientCertificate.read(
        _decoded(certificate), _decoded(key), where=(_where(certificate), _where(key))
    )


def _server(node: Node) -> str:
    """Simulated clusters answer plain http on loopback; those have no kubeconfig."""
    found = credential.server(_text(node), _where(node))
    if not found.startswith("https:"):
        raise _refusal(node, "only https is taken")
    return found


def _one(node: Node, kind: str) -> tuple[str, Node]:
    """The name and the contents of the only entry of a list."""
    if not isinstance(node.value, list) or len(node.value) != 1:
        raise _refusal(node, f"a list of exactly one {kind} is wanted")
    fields = _fields(node.value[0], needed=("name", kind))
    return _text(fields["name"]), fields[kind]


def _fields(
    node: Node, *, needed: tuple[str, ...], allowed: tuple[str, ...] = ()
) -> dict[str, Node]:
    if not isinstance(node.value, dict):
        raise _refusal(node, f"a mapping is wanted, not {node.kind}")
    known = {*needed, *allowed}
    for name, child in node.value.items():
        if name in known:
            continue
        if name in _REFUSED:
            raise _refusal(child, _REFUSED[name])
        where = f"line {child.line}, {node.path or 'the top'}"
        taken = ", ".join(sorted(known)) or "none"
        raise BadCredential(where, f"an unknown field; those that are taken here: {taken}")
    for name in needed:
        if name not in node.value:
            raise BadCredential(f"line {node.line}, {node.below(name)}", "this field is required")
    return node.value


def _text(node: Node) -> str:
    if not isinstance(node.value, str):
        raise _refusal(node, f"text, in quotes if need be, is wanted, not {node.kind}")
    return node.value


def _constant(node: Node, wanted: str) -> None:
    if _text(node) != wanted:
        raise _refusal(node, f"{wanted} is wanted")


def _same(node: Node, name: str, what: str) -> None:
    if _text(node) != name:
        raise _refusal(node, f"the name of {what} in the same file is wanted")


def _decoded(node: Node) -> str:
    try:
        return base64.b64decode(_text(node), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise _refusal(node, "PEM in base64, on one line, is wanted") from None


def _refusal(node: Node, why: str) -> BadCredential:
    return BadCredential(_where(node), why)


def _where(node: Node) -> str:
    return f"line {node.line}, {node.path}" if node.path else f"line {node.line}"
