"""The setting that names the levels of the topology, and what a node's labels tell of them."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from clusters.models import Node
from controlplane.settings.env import levels


def read(value: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("BERTH_TOPOLOGY_LEVELS", value)
    return levels("BERTH_TOPOLOGY_LEVELS", "zone=a/zone")


def test_levels_keep_their_order_and_may_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(read("row=x/row, rack=x/rack", monkeypatch).items()) == [
        ("row", "x/row"),
        ("rack", "x/rack"),
    ]
    assert read("", monkeypatch) == {}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("rack", "'rack' is not so"),
        ("rack=", "'rack=' is not so"),
        ("=x", "'=x' is not so"),
        ("Rack=x", "'Rack=x' is not so"),
        ("rack=x rack=y", "'rack=y' is not so"),
        (" ".join(f"l{i}=x" for i in range(9)), "at most 8 levels, not 9"),
    ],
)
def test_a_bad_list_is_refused_with_what_would_be_right(
    value: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ImproperlyConfigured, match=told):
        read(value, monkeypatch)


def test_a_node_tells_the_levels_that_its_labels_have() -> None:
    node = Node(labels={"a/rack": "r1", "a/zone": "", "other": "x"})
    assert node.topology({"zone": "a/zone", "rack": "a/rack", "node": "a/host"}) == {"rack": "r1"}
