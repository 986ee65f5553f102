"""The kinds of problem the API tells of: a stable code, a title, and what to do about it. Data
only."""

from collections.abc import Mapping
from dataclasses import dataclass

ROOT = "/api/v1/problems/"


@dataclass(frozen=True, slots=True)
class Kind:
    """`status` None: it follows from the error's class."""

    title: str
    fix: str
    status: int | None = None


KINDS: Mapping[str, Kind] = {
    "invalid": Kind(
        "The input is not acceptable",
        "Each entry of `errors` names a field by its JSON pointer and says what would be right. "
        "A pointer that begins with ? names a query parameter, one with # a header.",
    ),
    "malformed": Kind("The body is not JSON", "Send one JSON object, encoded as UTF-8."),
    "too-large": Kind(
        "The body is too large", "Bodies may have 1 MiB. Split a batch into several."
    ),
    "not-signed-in": Kind(
        "Nobody is signed in", "Sign in on the portal, or send `Authorization: Bearer <token>`."
    ),
    "bad-token": Kind(
        "The token is not valid",
        "It is unknown, expired or revoked: make a new one on the portal.",
    ),
    "not-allowed": Kind(
        "Not permitted", "Your role, or your token's scopes, do not permit this; ask an owner."
    ),
    "not-found": Kind(
        "No such object", "The id is unknown, or belongs to a project that you have no role in."
    ),
    "conflict": Kind("The object has changed", "Read it again, then decide anew."),
    "unavailable": Kind("A part does not answer", "Try again in a moment."),
    "internal": Kind("An error in Berth", "It is in the log; tell the operator when it was."),
    "never-admissible": Kind(
        "It could never start", "Ask for less, for another flavor, or for more quota."
    ),
    "exceeds-capacity": Kind(
        "It is larger than the hardware",
        "Ask for less a pod or for fewer pods, or accept another flavor or cluster; the message "
        "has the largest that one node and one cluster could hold.",
    ),
    "no-matching-flavor": Kind(
        "No accepted cluster has the flavor",
        "Accept another flavor or cluster: `GET /api/v1/flavors` lists what there is.",
    ),
    "isolation": Kind(
        "The flavors that are left isolate too little",
        "Accept a flavor that isolates as much as the project and the request ask for, or have an "
        "owner of the project accept less; the message says whose word it is.",
    ),
    "no-such-device": Kind(
        "No flavor has what is wished of a GPU",
        "Wish for less memory or another vendor: `GET /api/v1/flavors` lists what there is.",
    ),
    "queue-full": Kind("Too many pending workloads", "Wait until some have started."),
    "self-approval": Kind("Own requests are decided by somebody else", "Ask another approver."),
    "key-reused": Kind(
        "The Idempotency-Key belongs to another request", "Use a new key for a new body.", 422
    ),
    "in-flight": Kind(
        "The same request is being worked on", "Send it again in a moment for its answer.", 409
    ),
    "too-often": Kind("Too many requests", "Wait as long as Retry-After says.", 429),
    "stale-preview": Kind(
        "The preview is not of what is there now", "Ask for another, and decide by that.", 409
    ),
    "version-mismatch": Kind("Somebody changed it meanwhile", "Read it again.", 409),
}


def type_of(code: str) -> str:
    """The stable URL path of a kind; codes without a page of their own are kinds of `invalid`."""
    return f"{ROOT}{code}" if code in KINDS else f"{ROOT}invalid"


def title_of(code: str, *, status: int) -> str:
    kind = KINDS.get(code)
    return kind.title if kind else _TITLES.get(status, KINDS["invalid"].title)


def status_of(code: str) -> int | None:
    """The status that a code has whatever raised it."""
    kind = KINDS.get(code)
    return kind.status if kind else None


_TITLES = {
    403: "Not permitted",
    404: "No such object",
    405: "Method not allowed",
    406: "Only JSON can be had",
    409: "The object has changed",
    415: "Only JSON is accepted",
    429: "Too many requests",
}
