"""Attacks on what is held: placements and the spans of devices."""

from datetime import timedelta

from clusters.models import Device, DeviceMode, Flavor, Node
from scheduler.models import Attempt, Placement, PlacementSpan, PodSet, PodSetFlavor, Workload
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import (
    Move,
    Statement,
    change,
    copy,
    empty,
    insert_like,
    remove,
    update,
)
from tests.constraints.rows import NOON, Values, make

RELEASED: Values = {
    "placement": lambda: make(Placement, released_at=NOON),
    "released_at": NOON,
}
"""Of a span whose placement is released too."""
UID = {"pod_uid": "uid"}


def second(given: Values | None = None, /, **columns: object) -> Move:
    """INSERT of a second pod of an attempt."""
    return copy(Placement, given, **{"rank": 2, "pod_name": "the-second", **columns})


def _span_comes_back() -> Statement:
    released = make(PlacementSpan, **RELEASED)
    make(PlacementSpan, device=released.device)
    return update(released, released_at=None)


def _only_its_placement() -> Statement:
    return update(make(PlacementSpan).placement, released_at=NOON)


def _in_anothers_attempt() -> Statement:
    pod = make(Placement)
    other = make(Attempt, cluster=pod.attempt.cluster)
    return insert_like(pod, attempt_id=other.pk)


def _of_anothers_pod_set() -> Statement:
    pod = make(Placement)
    other = make(PodSetFlavor, flavor=pod.flavor)
    return insert_like(pod, rank=2, pod_name="the-second", pod_set_id=other.pod_set.pk)


def _other(
    model: type[Workload | Attempt | PodSet | Node | Flavor | Device | Placement],
) -> Values:
    """The column that names such a row, with another one."""
    name = "pod_set" if model is PodSet else model.__name__.lower()
    return {f"{name}_id": lambda: make(model).pk}


PLACEMENTS = (
    Attack("placement_rank_once", "two pods have one rank", second(rank=1)),
    Attack("placement_name_once", "two pods of an attempt have one name", copy(Placement, rank=2)),
    Attack("placement_uid_once", "a pod is two placements", second({"pod_uid": "uid"})),
    *(
        Attack(
            "placement_uid_stays", f"a placement's pod {what}", change(Placement, UID, **columns)
        )
        for what, columns in (
            ("is replaced by another", {"pod_uid": "another"}),
            ("is forgotten", {"pod_uid": ""}),
        )
    ),
    *(
        Attack(
            "placement_amounts_positive",
            f"it holds no {column}",
            change(Placement, **{column: 0}),
            behind=("placement_stays",),
        )
        for column in ("amount_milli", "cpu_milli", "memory_mib")
    ),
    Attack(
        "placement_opened_has_uid",
        "a gate is open on no known pod",
        change(Placement, opened_at=NOON),
    ),
    Attack(
        "placement_ends_after_start",
        "a pod ends before it starts",
        change(Placement, started_at=NOON, ended_at=NOON - timedelta(seconds=1)),
    ),
    negative("scheduler_placement_rank_check", Placement, "rank", "placement_stays"),
    *(
        Attack("placement_fits", sentence, second(**_other(model)))
        for sentence, model in (
            ("a pod is of another workload than its attempt", Workload),
            ("a pod is on another cluster's node", Node),
            ("a pod is on a flavor that it does not accept", Flavor),
        )
    ),
    Attack("placement_fits", "a pod is of another workload's attempt", _in_anothers_attempt),
    Attack("placement_fits", "a pod is of another workload's pod set", _of_anothers_pod_set),
    *(
        Attack("placement_stays", sentence, change(Placement, **columns))
        for sentence, columns in (
            *(
                (f"a placement is moved to another {model.__name__}", _other(model))
                for model in (Workload, Attempt, PodSet, Node, Flavor)
            ),
            *(
                (f"a placement's {column} changes", {column: 2})
                for column in ("rank", "amount_milli", "cpu_milli", "memory_mib")
            ),
            ("a pod is renamed", {"pod_name": "another"}),
        )
    ),
    Attack(
        "placement_stays_released",
        "what was released is held again",
        change(Placement, {"released_at": NOON}, released_at=None),
    ),
    Attack("placement_held_is_kept", "what is held is forgotten", remove(Placement)),
    Attack(
        "placement_never_emptied",
        "all that is held is forgotten",
        empty(Placement),
        behind=("span_never_emptied",),
    ),
    Attack("placement_released_with_spans", "a released pod holds a device", _only_its_placement),
)

SPANS = (
    Attack("span_held_once", "two pods hold one span", copy(PlacementSpan)),
    Attack("span_held_once", "two pods overlap in one slice", copy(PlacementSpan, span="[3,8)")),
    Attack(
        "span_held_once",
        "a released span comes back to a taken place",
        _span_comes_back,
        behind=("span_stays_released",),
    ),
    *(
        Attack("span_on_axis", sentence, change(PlacementSpan, span=span), behind=("span_stays",))
        for sentence, span in (
            ("a span is empty", "empty"),
            ("a span begins below 0", "[-1,4)"),
            ("a span is more than a device", "[0,1001)"),
            ("a span has no end", "[0,)"),
        )
    ),
    *(
        Attack(
            "span_fits",
            f"a {mode} device is held past slice 7",
            copy(
                PlacementSpan, {"device": lambda mode=mode: make(Device, mode=mode)}, span="[4,9)"
            ),
        )
        for mode in (DeviceMode.MIG_STATIC, DeviceMode.MIG_DYNAMIC)
    ),
    Attack(
        "span_fits",
        "a pod holds a device of another node",
        copy(PlacementSpan, **_other(Device)),
    ),
    Attack(
        "span_fits",
        "a released pod takes a span",
        copy(PlacementSpan, RELEASED, released_at=None),
    ),
    Attack(
        "span_fits",
        "a pod that holds what it has takes a released span",
        copy(PlacementSpan, span="[4,8)", released_at=NOON),
    ),
    *(
        Attack("span_stays", f"a span is of another {what}", change(PlacementSpan, **columns))
        for what, columns in (
            ("placement", _other(Placement)),
            ("device", _other(Device)),
            ("size", {"span": "[0,5)"}),
        )
    ),
    Attack(
        "span_stays_released",
        "a released pod holds a device again",
        change(PlacementSpan, RELEASED, released_at=None),
    ),
    Attack("span_held_is_kept", "a device that is held looks free", remove(PlacementSpan)),
    Attack("span_never_emptied", "every device looks free", empty(PlacementSpan)),
    Attack(
        "span_released_with_placement",
        "a device of a pod that holds it looks free",
        change(PlacementSpan, released_at=NOON),
    ),
)

ATTACKS = PLACEMENTS + SPANS
