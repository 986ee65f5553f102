"""What was written comes back equal, to the bit, and what was not written so is refused."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core import wire
from scheduler.core.cycle import plan
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import SCHEMA, Snapshot
from tests.core.build import job, node, queue, runs, snapshot
from tests.core.drawn.fleets import snapshots

OF = snapshot(
    nodes=[node("n1", gpus=2, cut=(("1g.10gb", 0, 1),))],
    queues=[queue("a", h100=4)],
    pending=[job("w")],
    holding=[runs("r", "a", "n1/0")],
)


def _written(value: object) -> Any:  # Any: as JSON has it
    return orjson.loads(orjson.dumps(value))


@settings(max_examples=100, deadline=None)
@given(of=snapshots(), preemption=st.booleans())
def test_a_snapshot_comes_back_equal_and_is_planned_to_the_same_bits(
    of: Snapshot, preemption: bool
) -> None:
    policy = Policy(preemption=preemption)
    again = wire.read(Snapshot, _written(of))
    assert again == of
    assert wire.read(Policy, _written(policy)) == policy
    made = plan(of, policy)
    assert wire.read(Plan, _written(made)) == made
    assert orjson.dumps(plan(again, policy)) == orjson.dumps(made)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("at",), "now", "Snapshot.at is 'now'; right would be int."),
        (("at",), True, "Snapshot.at is True; right would be int."),
        (("at",), 1.0, "Snapshot.at is 1.0; right would be int."),
        (("pending",), {}, "Snapshot.pending is {}; right would be a list."),
        (
            ("pending", 0, "pod_sets", 0, "count"),
            None,
            "Snapshot.pending[0].pod_sets[0].count is None",
        ),
        (("pending", 0, "run_time_limit_s"), "1", "is '1'; right would be NoneType or int."),
        (("pending", 0, "wish"), 1, "Snapshot.pending[0] has the unknown field wish."),
        (
            ("flavors", 0, "kind"),
            "odd",
            "is 'odd'; right would be whole or mig or share or cpu or model.",
        ),
        (("flavors", 0), "h100", "Snapshot.flavors[0] is 'h100'; right would be an object."),
        (("flavors", 0), {"id": "x", "kind": "cpu"}, "Snapshot.flavors[0] lacks the field name."),
        (
            ("clusters", 0, "nodes", 0, "devices", 0, "slices", 0, "span"),
            {"start": 3, "end": 2},
            "slices[0].span cannot be: not a span: [3, 2)",
        ),
        (("holding", 0, "placements", 0, "spans", 0), ["x"], "right would be a list of 2."),
    ],
)
def test_it_says_where_what_was_stored_is_not_what_it_should_be(
    path: tuple[str | int, ...], value: object, said: str
) -> None:
    stored = _written(OF)
    at = stored
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(wire.Unreadable) as refused:
        wire.read(Snapshot, stored)
    assert said in str(refused.value)


def test_a_field_that_is_missing_has_its_default() -> None:
    stored = _written(OF)
    del stored["cohorts"]
    assert wire.read(Snapshot, stored) == OF


def test_another_schema_is_refused_and_told() -> None:
    wire.check_schema(SCHEMA)
    with pytest.raises(wire.Unreadable, match=f"of schema 2; this version reads schema {SCHEMA}"):
        wire.check_schema(2)
