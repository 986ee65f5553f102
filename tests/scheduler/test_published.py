"""What drivers publish of a node's devices, as the node's devices: nothing twice, nothing that is
not wholly known."""

from dataclasses import replace

import pytest

from clusters.adapters.kubernetes.resource_slices import resource_slice
from clusters.port import DeviceReport, NodeReport, SliceReport
from scheduler.core.node import mig
from scheduler.loop.watching.published import Published, join
from tests.kube import resource_slices as made
from tests.kube.resource_slices import Json

NODE = NodeReport("n1", "n1", "u1", True, True, 1000, 1000)


def joined(*bodies: Json, node: NodeReport = NODE) -> tuple[NodeReport, list[str]]:
    found, told = join(node, [resource_slice(body) for body in bodies])
    return found, list(told)


def whole(nth: int, **more: str) -> Json:
    return made.whole("n1", nth, **more)


def test_a_node_of_which_nobody_publishes_anything_is_as_it_was() -> None:
    assert joined() == (NODE, [])
    foreign = made.published("n1", [whole(0)])
    foreign["spec"]["driver"] = "net.example.test"
    assert joined(foreign) == (NODE, [])


def test_whole_devices_have_their_uuid_model_and_memory_in_the_order_of_their_numbers() -> None:
    node, told = joined(made.published("n1", [whole(nth) for nth in (10, 9, 0)]))
    assert told == []
    assert node.device_driver == "gpu.nvidia.com"
    assert node.devices == tuple(
        DeviceReport(ordinal, "H100-80GB-HBM3", 81_920, uuid=f"GPU-n1-{nth}")
        for ordinal, nth in enumerate((0, 9, 10))
    )


def test_devices_that_the_device_plugin_offers_too_are_known_and_not_used() -> None:
    both = NodeReport(
        "n1",
        "n1",
        "u1",
        True,
        True,
        1,
        1,
        devices=(DeviceReport(0, "H100", 1), DeviceReport(1, "H100", 1)),
        share_replicas=4,
        share_isolation="none",
        mig_counts={"1g.10gb": 7},
    )
    node, told = joined(made.published("n1", [whole(0), whole(1)]), node=both)
    assert [device.uuid for device in node.devices] == ["GPU-n1-0", "GPU-n1-1"]
    assert not any(device.usable for device in node.devices)
    assert (node.share_replicas, node.share_isolation, node.mig_counts) == (1, "", {})
    assert told == [
        "gpu.nvidia.com and a device plugin both offer its devices: take one of them away"
    ]


@pytest.mark.parametrize(
    ("effect", "usable"), [("NoSchedule", False), ("NoExecute", False), ("None", True)]
)
def test_a_tainted_device_takes_nothing_new(effect: str, usable: bool) -> None:
    taints = [{"key": "xid", "effect": effect}]
    node, _ = joined(made.published("n1", [whole(0), made.whole("n1", 1, taints=taints)]))
    assert [device.usable for device in node.devices] == [True, usable]


def test_of_a_pool_of_which_parts_are_missing_nothing_is_used() -> None:
    node, told = joined(made.published("n1", [whole(0)], parts=2))
    assert [device.usable for device in node.devices] == [False]
    assert told == ["of the pool n1 1 of 2 parts are there, so its devices take nothing new"]
    node, told = joined(
        made.published("n1", [whole(0)], parts=2),
        made.published("n1", [whole(1)], part=1, parts=2),
    )
    assert [device.usable for device in node.devices] == [True, True]
    assert told == []


def test_parts_of_an_older_generation_do_not_make_a_pool_whole() -> None:
    old = made.published("n1", [whole(0)], parts=2, generation=1)
    new = made.published("n1", [whole(1)], part=1, parts=2, generation=2)
    node, told = joined(old, new)
    assert {device.uuid: device.usable for device in node.devices} == {
        "GPU-n1-0": False,
        "GPU-n1-1": False,
    }
    assert len(told) == 1
    # Once the new generation is there, what the old one told alone is gone.
    node, told = joined(old, made.published("n1", [whole(1)], part=1, generation=2))
    assert [device.uuid for device in node.devices] == ["GPU-n1-1"]
    assert told == []


def in_pool(name: str, body: Json) -> Json:
    body["metadata"]["name"] = name
    body["spec"]["pool"]["name"] = name
    return body


def test_all_pools_of_a_driver_are_used_each_as_far_as_it_is_there() -> None:
    node, told = joined(
        in_pool("a", made.published("n1", [whole(5)])),
        in_pool("b", made.published("n1", [whole(0)], parts=2)),
        in_pool("c", made.published("n1", [whole(1)], generation=7)),
    )
    found = {device.uuid: device.usable for device in node.devices}
    assert found == {"GPU-n1-0": False, "GPU-n1-1": True, "GPU-n1-5": True}
    assert [device.ordinal for device in node.devices] == [0, 1, 2]
    assert told == ["of the pool b 1 of 2 parts are there, so its devices take nothing new"]


def test_what_is_in_two_pools_is_one_device_and_takes_nothing_new() -> None:
    node, told = joined(
        in_pool("a", made.published("n1", [whole(0)])),
        in_pool("b", made.published("n1", [whole(0), whole(1)])),
    )
    found = [(device.uuid, device.usable) for device in node.devices]
    assert found == [("GPU-n1-0", False), ("GPU-n1-1", True)]
    assert told == ["GPU-n1-0 is in two pools, so it takes nothing new"]


def test_slices_that_are_cut_lie_where_the_driver_says() -> None:
    pieces = [
        made.piece("n1", 0, "3g.40gb", 4, cut=True),
        made.piece("n1", 0, "1g.10gb", 2, cut=True),
    ]
    node, told = joined(made.published("n1", pieces))
    [device] = node.devices
    assert told == []
    assert (device.mode, device.uuid, device.usable) == ("mig-static", "GPU-n1-0", True)
    assert device.slices == (SliceReport("1g.10gb", 2, 3), SliceReport("3g.40gb", 4, 8))


def test_slices_that_lie_on_each_other_are_not_used() -> None:
    pieces = [
        made.piece("n1", 0, "3g.40gb", 4, cut=True),
        made.piece("n1", 0, "1g.10gb", 5, cut=True),
    ]
    node, told = joined(made.published("n1", pieces))
    assert (node.devices[0].usable, node.devices[0].slices, len(told)) == (False, (), 1)


def test_partitionable_devices_are_cut_on_demand() -> None:
    node, told = joined(*made.cuttable("n1", 2))
    assert told == []
    assert [(d.mode, d.usable, d.memory_mib) for d in node.devices] == [
        ("mig-dynamic", True, 81_920)
    ] * 2


def _counter(bodies: list[Json]) -> Json:
    found: Json = bodies[0]["spec"]["sharedCounters"][0]["counters"]
    return found


@pytest.mark.parametrize("name", ["multiprocessors", "memory-slice-3"])
def test_more_than_the_counters_allow_is_never_placed(name: str) -> None:
    bodies = made.cuttable("n1")
    _counter(bodies)[name] = {"value": "6" if name == "multiprocessors" else "0"}
    node, told = joined(*bodies)
    assert [device.usable for device in node.devices] == [False]
    assert f"gpu-0-counter-set {name}, so it is not used" in told[0]


def test_a_place_that_is_not_offered_is_never_planned() -> None:
    bodies = made.cuttable("n1")
    devices = bodies[1]["spec"]["devices"]
    devices.remove(next(d for d in devices if d["name"].endswith("-mig-2g20gb-2")))
    node, told = joined(*bodies)
    assert [device.usable for device in node.devices] == [False]
    assert told == ["GPU-n1-0: no 2g.20gb is offered at memory slice 2, so it is not used"]


def test_slices_without_a_place_leave_the_device_whole() -> None:
    """So NVIDIA's driver publishes them today: a claim can name profile and device, not where."""
    bodies = made.cuttable("n1")
    for device in bodies[1]["spec"]["devices"]:
        device["capacity"] = {"memory": device["capacity"]["memory"]}
    node, told = joined(*bodies)
    assert [(d.mode, d.usable) for d in node.devices] == [("whole", True)]
    assert told == [
        "GPU-n1-0: its slices can't be asked for by their place, so it is given as a whole"
    ]


def test_every_board_can_be_published() -> None:
    """The check of counters asks for all full layouts of a board: none of them is too many."""
    for model in ("H100-80GB-HBM3", "A30-24GB"):
        board = mig.board(model=model)
        assert board is not None
        assert mig.full_layouts(model=model, profiles=[p.name for p in board.profiles])


def test_it_follows_what_changes() -> None:
    published = Published()
    assert published.nodes([NODE], complete=True)[0].devices == ()
    first = resource_slice(made.published("n1", [whole(0)], parts=2))
    [node] = published.listed([first])
    assert [device.usable for device in node.devices] == [False]
    assert published.told[0].startswith("n1: of the pool n1 1 of 2 parts")
    [node] = published.changed(
        [resource_slice(made.published("n1", [whole(1)], part=1, parts=2))], []
    )
    assert [device.usable for device in node.devices] == [True, True]
    assert published.told == ()
    [node] = published.changed([], ["n1-0", "n1-1"])
    assert (node.device_driver, node.devices) == ("", ())
    assert published.changed([], ["never-seen"]) == []


def test_why_none_of_a_nodes_devices_is_used_is_told() -> None:
    assert joined(node=replace(NODE, unused="for that")) == (
        replace(NODE, unused="for that"),
        ["for that"],
    )


def test_devices_that_are_given_away_in_parts_stay_unused_when_a_driver_publishes_them() -> None:
    node, told = joined(made.published("n1", [whole(0)]), node=replace(NODE, unused="for that"))
    assert [device.usable for device in node.devices] == [False]
    assert told == ["for that"]


def test_a_device_that_makes_no_sense_is_left_out_alone() -> None:
    nonsense = whole(1)
    nonsense["attributes"]["uuid"] = {"string": "GPU 1 ' || true"}
    node, told = joined(made.published("n1", [whole(0), nonsense]))
    assert [(device.uuid, device.usable) for device in node.devices] == [("GPU-n1-0", True)]
    assert told == ["gpu-1: a device has no uuid that makes sense"]


def test_a_node_none_of_whose_devices_makes_sense_is_the_drivers_all_the_same() -> None:
    nonsense = whole(0)
    nonsense["capacity"]["memory"] = {"value": "much"}
    counted = replace(NODE, devices=(DeviceReport(0, "H100", 1),))
    node, told = joined(made.published("n1", [nonsense]), node=counted)
    assert (node.device_driver, node.devices) == ("gpu.nvidia.com", ())
    assert told[-1].startswith("gpu-0: ")


def test_profiles_may_be_less_something() -> None:
    board = made.piece("n1", 0, "1g.10gb", 2, cut=True)
    board["attributes"]["profile"] = {"string": "1g.24gb-me"}
    node, told = joined(made.published("n1", [board]))
    assert told == []
    assert node.devices[0].slices == (SliceReport("1g.24gb-me", 2, 3),)
