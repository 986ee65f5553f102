"""What a device class selects, as far as Berth reads its selectors; the rest is never guessed."""

from typing import Any

import pytest

from clusters.adapters.kubernetes.checks import Malformed
from clusters.adapters.kubernetes.device_classes import device_class
from clusters.published import Selected

DRIVER = "device.driver == 'gpu.nvidia.com'"
OF = "device.attributes['gpu.nvidia.com']"
WHOLE = f"{DRIVER} && {OF}.type == 'gpu'"
SLICE = f"{DRIVER} && {OF}.type == 'mig'"


def body(*expressions: Any, **spec: Any) -> dict[str, Any]:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors, **spec}}


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ([WHOLE], Selected("gpu.nvidia.com")),
        ([DRIVER, f"{OF}.type == 'gpu'"], Selected("gpu.nvidia.com")),
        ([WHOLE.replace("'", '"').replace(" ", "  ")], Selected("gpu.nvidia.com")),
        ([SLICE, f"{OF}.profile == '1g.10gb'"], Selected("gpu.nvidia.com", "1g.10gb")),
        (
            [WHOLE, f"{OF}.productName == 'NVIDIA H100 80GB HBM3'"],
            Selected("gpu.nvidia.com", "", "H100-80GB-HBM3"),
        ),
    ],
)
def test_what_it_selects_is_read(expressions: list[str], expected: Selected) -> None:
    report = device_class(body(*expressions, extendedResourceName="nvidia.com/gpu"))
    assert report.selected == expected
    assert report.resources == ("nvidia.com/gpu", "deviceclass.resource.kubernetes.io/gpu")


@pytest.mark.parametrize(
    ("expressions", "why"),
    [
        ([], "names no driver that Berth knows: gpu.nvidia.com"),
        (["device.driver == 'tpu.google.com'"], "names no driver that Berth knows"),
        ([DRIVER], "does not say type == 'gpu', or type == 'mig' and which profile"),
        ([SLICE], "does not say type == 'gpu'"),
        ([WHOLE, f"{OF}.profile == '1g.10gb'"], "does not say type == 'gpu'"),
        ([WHOLE, f"{OF}.type == 'mig'"], "selects no device: 'mig' and 'gpu' at once"),
        ([WHOLE, f"{OF}.uuid == 'GPU-1'"], "selects by gpu.nvidia.com/uuid, which Berth does not"),
        ([WHOLE, "device.attributes['example.test'].type == 'gpu'"], "selects by example.test/"),
        ([f"{WHOLE} || true"], "which Berth can't read"),
        ([f"!({WHOLE})"], "which Berth can't read"),
        ([WHOLE, f"{OF}.type != 'gpu'"], "which Berth can't read"),
        ([f"{DRIVER} && {OF}.type == 'g\\\\u0070u'"], "which Berth can't read"),
        ([WHOLE, "device.capacity['gpu.nvidia.com'].memory == 'x'"], "which Berth can't read"),
    ],
)
def test_what_nobody_can_tell_is_said_to_be_unclear(expressions: list[str], why: str) -> None:
    report = device_class(body(*expressions))
    assert report.selected is None
    assert why in report.unclear


@pytest.mark.parametrize(
    "broken",
    [
        body(1),
        body("x" * 10_241),
        body(WHOLE, extendedResourceName="a b"),
        {"metadata": {}, "spec": {}},
        {"metadata": {"name": "gpu"}, "spec": {"selectors": "all"}},
    ],
)
def test_what_is_no_class_is_malformed(broken: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        device_class(broken)
