"""Pure: a raw DeviceClass as its report, and which devices CEL selectors choose.

Of CEL a small part is read: equalities of a device's driver, and of what `drivers` knows of its
kind, profile and model, joined by `&&`. It is read soundly or not at all: whatever else a selector
says, nobody here guesses what it chooses.
"""

import re
from collections.abc import Iterable

from clusters.adapters.kubernetes.checks import Json, Malformed, mapping, objects, word
from clusters.adapters.kubernetes.drivers import DRIVERS
from clusters.adapters.kubernetes.failures import printable
from clusters.adapters.kubernetes.models import model_of
from clusters.published import DeviceClassReport, Selected

MOST_CLASSES = 1000
LONGEST = 10_240
"""Of an expression, as the API server has it."""
_TEXT = r"""(?:'([^'"\\]*)'|"([^'"\\]*)")"""
_TERM = re.compile(rf"\s*device\.(?:driver|attributes\[{_TEXT}\]\.(\w+))\s*==\s*{_TEXT}\s*")


class Unclear(ValueError):
    """Nobody can tell which devices are meant; the message says why, to follow a name."""


def device_class(body: Json) -> DeviceClassReport:
    """Raises Malformed for one that makes no sense."""
    metadata, spec = mapping(body, "metadata"), mapping(body, "spec")
    name = word(metadata, "name")
    resource = word(spec, "extendedResourceName") if spec.get("extendedResourceName") else ""
    try:
        return DeviceClassReport(name, resource, selected(expressions(spec)))
    except Unclear as unclear:
        return DeviceClassReport(name, resource, None, str(unclear))


def expressions(spec: Json) -> list[str]:
    """What the selectors of a class, or of a request, say; all have to hold. Raises Malformed."""
    found = []
    for each in objects(spec, "selectors"):
        expression = mapping(each, "cel").get("expression")
        if not isinstance(expression, str) or len(expression) > LONGEST:
            raise Malformed("a selector is no expression")
        found.append(expression)
    return found


def selected(of: Iterable[str]) -> Selected:
    """The devices for which all expressions hold. Raises Unclear."""
    facts: dict[tuple[str, str], str] = {}
    for expression in of:
        for term in expression.split("&&"):
            what, value = _equality(term)
            if facts.setdefault(what, value) != value:
                raise Unclear(f"selects no device: {value!r} and {facts[what]!r} at once")
    driver = DRIVERS.get(facts.pop(("", ""), ""))
    if driver is None:
        raise Unclear(f"names no driver that Berth knows: {', '.join(DRIVERS)}")
    by_name = {name: value for (domain, name), value in facts.items() if domain == driver.name}
    looked_at = (driver.kind, driver.profile, driver.model)
    if unknown := facts.keys() - {(driver.name, name) for name in looked_at}:
        told = ", ".join(sorted(f"{domain}/{name}" for domain, name in unknown))
        raise Unclear(f"selects by {told}, which Berth does not look at")
    kind, profile = by_name.get(driver.kind), by_name.get(driver.profile, "")
    if kind == (driver.slice if profile else driver.whole):
        model = by_name.get(driver.model, "").strip()
        model = model_of(model.replace(" ", "-"))[:80] if model else ""
        return Selected(driver.name, profile, model)
    raise Unclear(
        f"does not say {driver.kind} == '{driver.whole}',"
        f" or {driver.kind} == '{driver.slice}' and which {driver.profile}"
    )


def _equality(term: str) -> tuple[tuple[str, str], str]:
    """Of what, an attribute's domain and name or nothing for the driver, and which value."""
    found = _TERM.fullmatch(term)
    if found is None:
        said = printable(term.strip(), longest=60)
        raise Unclear(f"selects by {said!r}, which Berth can't read")
    single, double, name, first, second = found.groups()
    return (single or double or "", name or ""), first if first is not None else second
