"""What a cluster says of pods that others made and Berth may start, and of who made them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OwnerRef:
    """What makes pods, as they name it."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class OwnerReport:
    """The topmost of known kind of what owns some pods. `sizes` is how many pods start together,
    by part, those without pods left out; () where its pods start each by itself."""

    top: OwnerRef
    sizes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class CaughtPod:
    """What a pod that others made, and that waits for Berth, says of its place in the queue.

    `owner` None: nobody controls it. `part` is which of its owner's pods it is, and `of` which of
    its owner's gangs it is in, "" where there is but one. Its own word for a gang is `gang`, with
    how many there are in it, "" and 0 for none. `creator` is who made it, by the API server's
    word. `steered` is the field by which it chooses nodes itself, "" when it leaves that to Berth.
    `behind` names the gates of others at which it stands besides Berth's, "" where there are none.
    `images` are of all its containers, that of the first, `image`, too. `labels` are those that
    are not Berth's.
    `claims` is by which names it claims devices, each with the template of that claim, "" for one
    that others may share.
    """

    owner: OwnerRef | None = None
    part: str = ""
    of: str = ""
    gang: str = ""
    gang_size: int = 0
    image: str = ""
    priority: str = ""
    flavors: tuple[str, ...] = ()
    creator: str = ""
    run_time_limit_s: int | None = None
    grace_s: int = 30
    steered: str = ""
    behind: str = ""
    claims: tuple[tuple[str, str], ...] = ()
    images: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
