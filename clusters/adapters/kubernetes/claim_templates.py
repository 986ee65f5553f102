"""Pure: what claims made from a ResourceClaimTemplate ask for, and what stands in their place: the
same requests, each narrowed to certain devices.

A pod names its templates for good. But which claim was made from one its status says, and that is
believed of any claim that the pod controls.
"""

from collections.abc import Callable, Iterable, Sequence

from clusters.adapters.kubernetes.checks import Json, Malformed, mapping, objects, word
from clusters.adapters.kubernetes.device_classes import Unclear, expressions, selected
from clusters.adapters.kubernetes.drivers import selector
from clusters.claiming import ClaimRequest, ClaimTemplateReport
from clusters.published import Pin

OF_POD = "resource.kubernetes.io/pod-claim-name"
MOST_DEVICES = 32
"""Of one claim, as the API server has it."""
_KNOWN = {"deviceClassName", "selectors", "allocationMode", "count"}


class _Refused(ValueError):
    """The message says what would be right."""


def template(
    body: Json, *, claim: str, read_class: Callable[[str], Json | None]
) -> ClaimTemplateReport:
    """Of a claim that its pod calls `claim`. Raises Malformed, and what `read_class` raises."""
    devices = mapping(mapping(mapping(body, "spec"), "spec"), "devices")
    try:
        for key in ("constraints", "config"):
            if devices.get(key):
                raise _Refused(f"It sets {key}, which Berth does not look at: leave that out.")
        found = [_request(each, claim, read_class) for each in objects(devices, "requests")]
        if not 0 < sum(each.count for each in found) <= MOST_DEVICES:
            raise _Refused(f"It asks for no device, or for more than {MOST_DEVICES}.")
    except _Refused as refusal:
        return ClaimTemplateReport(refusal=str(refusal))
    return ClaimTemplateReport(tuple(found))


def _request(body: Json, claim: str, read_class: Callable[[str], Json | None]) -> ClaimRequest:
    name = word(body, "name")
    asked = mapping(body, "exactly")
    if not asked:
        raise _Refused(f"Its request {name} has alternatives: ask for one of them, exactly.")
    if asked.get("adminAccess"):
        raise _Refused(f"Its request {name} has adminAccess, which nobody is charged for.")
    if others := sorted(key for key in asked.keys() - _KNOWN if asked[key]):
        raise _Refused(f"Its request {name} sets {others[0]}: leave that out.")
    if asked.get("allocationMode", "ExactCount") != "ExactCount":
        raise _Refused(f"Its request {name} asks for all devices: say how many (ExactCount).")
    count = asked.get("count", 1)
    if type(count) is not int or not 0 < count < 1000:
        raise Malformed("a count is no number of devices")
    of, own = word(asked, "deviceClassName"), expressions(asked)
    found = read_class(of)
    if found is None:
        raise _Refused(f"There is no device class {of}.")
    try:
        chosen = selected([*expressions(mapping(found, "spec")), *own])
    except Unclear as unclear:
        raise _Refused(f"Its request {name}, of the class {of}, {unclear}.") from None
    return ClaimRequest(claim, name, of, tuple(own), count, chosen)


def narrowed(requests: Iterable[ClaimRequest], pins: Sequence[Pin]) -> Json:
    """The spec of a claim by which each request gets its part of the pins, in their order, and
    nothing else: what the template selects holds, too."""
    asked, at = [], 0
    for each in requests:
        own = " || ".join(f"({selector(pin)})" for pin in pins[at : at + each.count])
        at += each.count
        exactly = {
            "deviceClassName": each.device_class,
            "allocationMode": "ExactCount",
            "count": each.count,
            "selectors": [{"cel": {"expression": said}} for said in (own, *each.selectors)],
        }
        asked.append({"name": each.name, "exactly": exactly})
    return {"devices": {"requests": asked}}
