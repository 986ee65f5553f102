"""Pure: what a pod that the policy has caught says of its place in the queue."""

from clusters.adapters.kubernetes import owners
from clusters.adapters.kubernetes.checks import Json, Malformed, count, mapping, objects, word
from clusters.adapters.kubernetes.failures import printable
from clusters.adapters.kubernetes.names import Names
from clusters.caught import CaughtPod, OwnerRef

MOST_IN_GANG = 4096
_STEERING = ("nodeSelector", "affinity", "topologySpreadConstraints")
_GRACE_S, _MOST_S = 30, 10**7
_LONGEST = 300


def caught(body: Json, *, labels: dict[str, str], names: Names) -> CaughtPod | None:
    """None for a pod that nobody caught. What it says amiss of its gang, or of its owner, counts
    as not said: its people may write there what they like, and no pod of theirs is to vanish by
    it."""
    metadata, spec = mapping(body, "metadata"), mapping(body, "spec")
    if labels.get(names.label_caught) != names.installation:
        return None
    said = mapping(metadata, "annotations")
    containers = objects(spec, "containers")
    gang, size = _gang(said, names)
    limit_s, grace_s = (
        _seconds(spec, key) for key in ("activeDeadlineSeconds", "terminationGracePeriodSeconds")
    )
    return CaughtPod(
        owner=_owner(metadata, spec),
        part=owners.part(labels),
        of=owners.gang(labels),
        gang=gang,
        gang_size=size,
        image=_text(containers[0], "image") if containers else "",
        priority=labels.get(names.label_priority, ""),
        flavors=tuple(
            filter(None, map(str.strip, _text(said, names.annotation_flavors).split(",")))
        ),
        creator=_text(said, names.annotation_creator),
        run_time_limit_s=limit_s,
        grace_s=grace_s or _GRACE_S,
        steered=_steered(spec),
        behind=_behind(spec, names),
        claims=tuple(
            (_text(each, "name"), _text(each, "resourceClaimTemplateName"))
            for each in objects(spec, "resourceClaims")
        ),
        images=tuple(
            _text(each, "image") for each in (*containers, *objects(spec, "initContainers"))
        ),
        labels=tuple(
            sorted(
                (key, value)
                for key, value in labels.items()
                if not key.startswith(f"{names.prefix}/")
            )
        ),
    )


def _behind(spec: Json, names: Names) -> str:
    gates = [_text(gate, "name") for gate in objects(spec, "schedulingGates")]
    return ", ".join(gate for gate in gates if gate != names.gate)[:_LONGEST]


def _steered(spec: Json) -> str:
    """The first field by which it chooses nodes itself, "" for none."""
    return next((key for key in _STEERING if spec.get(key)), "")


def _owner(metadata: Json, spec: Json) -> OwnerRef | None:
    """Who made it, while it waits; once it runs nobody asks."""
    if not spec.get("schedulingGates"):
        return None
    try:
        return owners.controller(metadata)
    except Malformed:
        return None


def _gang(said: Json, names: Names) -> tuple[str, int]:
    """Name and size; "" and 0 unless both are there and make sense."""
    if names.annotation_gang not in said:
        return "", 0
    try:
        size = count(_text(said, names.annotation_gang_size), most=MOST_IN_GANG)
        return (word(said, names.annotation_gang), size) if size else ("", 0)
    except Malformed:
        return "", 0


def _seconds(spec: Json, key: str) -> int | None:
    value = spec.get(key)
    return value if type(value) is int and 0 < value < _MOST_S else None


def _text(body: Json, key: str) -> str:
    value = body.get(key)
    return printable(value, longest=_LONGEST) if isinstance(value, str) else ""
