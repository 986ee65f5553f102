"""What claims of a template ask for, which none is charged for, and what stands in their place."""

from typing import Any

import pytest

from clusters.adapters.kubernetes.checks import Malformed
from clusters.adapters.kubernetes.claim_templates import narrowed, template
from clusters.claiming import ClaimRequest, ClaimTemplateReport
from clusters.published import Pin, Selected

OF = "device.attributes['gpu.nvidia.com']"
CLASSES = {
    "gpu": [f"device.driver == 'gpu.nvidia.com' && {OF}.type == 'gpu'"],
    "mig": [f"device.driver == 'gpu.nvidia.com' && {OF}.type == 'mig'"],
}


def selectors(*said: str) -> list[Any]:
    return [{"cel": {"expression": each}} for each in said]


def read_class(name: str) -> dict[str, Any] | None:
    said = CLASSES.get(name)
    return None if said is None else {"spec": {"selectors": selectors(*said)}}


def told(*requests: dict[str, Any], **devices: Any) -> ClaimTemplateReport:
    body = {"spec": {"spec": {"devices": {"requests": list(requests), **devices}}}}
    return template(body, claim="mine", read_class=read_class)


def exactly(name: str = "a", **asked: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **asked}}


def test_each_request_has_what_its_class_and_its_own_selectors_choose() -> None:
    profile = f"{OF}.profile == '1g.10gb'"
    report = told(
        exactly("whole", count=2, allocationMode="ExactCount", adminAccess=False),
        exactly("part", deviceClassName="mig", selectors=selectors(profile)),
    )
    whole, part = Selected("gpu.nvidia.com"), Selected("gpu.nvidia.com", "1g.10gb")
    assert report == ClaimTemplateReport(
        (
            ClaimRequest("mine", "whole", "gpu", (), 2, whole),
            ClaimRequest("mine", "part", "mig", (profile,), 1, part),
        )
    )


@pytest.mark.parametrize(
    ("requests", "devices", "why"),
    [
        (
            [exactly(adminAccess=True)],
            {},
            "Its request a has adminAccess, which nobody",
        ),
        ([exactly(allocationMode="All")], {}, "asks for all devices: say how many (ExactCount)."),
        ([exactly(tolerations=[{}])], {}, "Its request a sets tolerations: leave that out."),
        ([exactly(capacity={"requests": {}})], {}, "Its request a sets capacity: leave that out."),
        ([{"name": "a", "firstAvailable": [{}]}], {}, "has alternatives: ask for one of them"),
        ([exactly(deviceClassName="none")], {}, "There is no device class none."),
        ([exactly(deviceClassName="mig")], {}, "Its request a, of the class mig, does not say"),
        ([exactly(selectors=selectors(f"{OF}.x > 1"))], {}, "which Berth can't read."),
        ([exactly()], {"constraints": [{}]}, "It sets constraints, which Berth does not look at"),
        ([exactly()], {"config": [{}]}, "It sets config, which Berth does not look at"),
        ([], {}, "It asks for no device, or for more than 32."),
        ([exactly(count=20), exactly("b", count=13)], {}, "or for more than 32."),
    ],
)
def test_what_nobody_could_be_charged_for_is_refused(
    requests: list[dict[str, Any]], devices: dict[str, Any], why: str
) -> None:
    report = told(*requests, **devices)
    assert report.requests == ()
    assert why in report.refusal


@pytest.mark.parametrize("count", ["1", True, 0, -1, 1000])
def test_what_is_no_count_makes_no_sense(count: object) -> None:
    with pytest.raises(Malformed, match="no number of devices"):
        told(exactly(count=count))


def test_each_request_is_narrowed_to_its_own_pins_and_keeps_what_it_selects() -> None:
    of = Selected("gpu.nvidia.com")
    requests = (
        ClaimRequest("mine", "one", "gpu", ("true",), 1, of),
        ClaimRequest("mine", "two", "gpu", (), 2, of),
    )
    spec = narrowed(requests, [Pin("gpu.nvidia.com", f"GPU-{nth}") for nth in range(3)])
    [one, two] = spec["devices"]["requests"]
    assert (one["name"], one["exactly"]["count"]) == ("one", 1)
    first, kept = (each["cel"]["expression"] for each in one["exactly"]["selectors"])
    assert ("GPU-0" in first, "GPU-1" in first, kept) == (True, False, "true")
    [either] = (each["cel"]["expression"] for each in two["exactly"]["selectors"])
    assert [f"GPU-{nth}" in either for nth in range(3)] == [False, True, True]
    assert ") || (" in either
