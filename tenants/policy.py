"""What the fleet, a tenant or a project says of what is submitted below it, and what then holds.
Pure: no database, no HTTP.

All that limits holds at once, whoever says it, so that who is further down can only tighten. Of
defaults the nearest word holds, within those limits (ADR 0103).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

PRIORITY_CLASSES = ("low", "normal", "high", "urgent")
"""As `scheduler.services.specs`."""
FIELDS = (
    "any_order", "args", "cluster_loss_requeue_s", "clusters", "command", "depends_on", "env",
    "gates", "gpu_memory_mib", "gpu_milli", "grace_s", "labels", "least_isolation", "min_count",
    "move_to_better", "notice_s", "preemptible", "priority_class", "retries", "run_time_limit_s",
    "topology", "wish",
)  # fmt: skip
"""Those of a submission that may be forbidden: what can't be left out, or names what it is to run
on, is no luxury."""
MAX_RUN_TIME_S = 90 * 24 * 3600
"""As `scheduler.services.specs`."""
MAX_GPUS_MILLI = 10**9
MAX_PODS = 4096
MAX_LABELS = 32
MAX_VALUES = 200
MAX_IMAGES = 200

type Value = int | str | Sequence[str] | Mapping[str, str] | Mapping[str, Sequence[str]]
"""What a rule says, as JSON has it."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What one says; None, "" and empty say nothing.

    `max_gpus_milli`, in thousandths of a GPU, slices and shares being parts of one, and `max_pods`
    are of one workload; run times are in seconds. A label of `required_labels` has one of those
    values, none being any. `images` are whole references, or end with `*` for all that begin so.
    """

    max_run_time_s: int | None = None
    max_gpus_milli: int | None = None
    max_pods: int | None = None
    priority_classes: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    required_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    forbidden_fields: tuple[str, ...] = ()
    default_run_time_s: int | None = None
    default_priority_class: str = ""
    default_labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Said:
    """Rules, and by whom: the fleet, a tenant or the project, as people call it."""

    by: str
    rules: Rules


@dataclass(frozen=True, slots=True)
class InForce:
    """One rule of `Rules`, or of what runs, what holds by it, and whose word that is."""

    rule: str
    value: Value
    by: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a policy looks at of a workload. `given` are those of FIELDS that are not as they would
    be if nobody had said them, and `images` those of its pods; each with its JSON pointer.
    """

    run_time_limit_s: int | None
    priority_class: str
    labels: Mapping[str, str]
    gpus_milli: int
    pods: int
    images: Sequence[tuple[str, str]]
    given: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for who does not say it."""

    run_time_limit_s: int | None
    priority_class: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """By which of `Rules`, of what (a JSON pointer), and why."""

    rule: str
    pointer: str
    message: str


def defaults(chain: Sequence[Said]) -> Defaults:
    """Of a chain, from the fleet down to the project. Where a run time is limited and nobody has a
    default, the limit is; a default that a limit does not permit gives way to it."""
    run_time = _default_run_time(chain)
    return Defaults(
        run_time_limit_s=run_time.value if run_time else None,
        priority_class=_default_class(chain)[0],
        labels={key: value for key, (value, _) in _default_labels(chain).items()},
    )


def refusals(chain: Sequence[Said], asked: Asked) -> list[Refusal]:
    """What each of the chain has against it, with the numbers and whose word it is; `asked` has
    the defaults in it already."""
    return [*_too_much(chain, asked), *_not_permitted(chain, asked)]


def _too_much(chain: Sequence[Said], asked: Asked) -> Iterator[Refusal]:
    limit, limit_s = _least(chain, "max_run_time_s"), asked.run_time_limit_s
    if limit and limit_s is not None and limit_s > limit.value:
        message = f"{span(limit_s)} is more than the {span(limit.value)} that {limit.by} permits."
        yield Refusal("max_run_time_s", "/run_time_limit_s", message)
    gpus = _least(chain, "max_gpus_milli")
    if gpus and asked.gpus_milli > gpus.value:
        message = (
            f"{in_gpus(asked.gpus_milli)} GPUs are more than the {in_gpus(gpus.value)} that"
            f" {gpus.by} permits one workload."
        )
        yield Refusal("max_gpus_milli", "/pod_sets", message)
    pods = _least(chain, "max_pods")
    if pods and asked.pods > pods.value:
        message = f"{asked.pods} pods are more than the {pods.value} that {pods.by} permits."
        yield Refusal("max_pods", "/pod_sets", message)


def _not_permitted(chain: Sequence[Said], asked: Asked) -> Iterator[Refusal]:
    for by, rules in _each(chain):
        if rules.priority_classes and asked.priority_class not in rules.priority_classes:
            permitted = ", ".join(rules.priority_classes)
            message = f"{asked.priority_class} is none of those that {by} permits: {permitted}."
            yield Refusal("priority_classes", "/priority_class", message)
        for pointer, image in asked.images:
            if rules.images and not any(_covers(each, image) for each in rules.images):
                message = f"{image} is no image that {by} permits: {', '.join(rules.images)}."
                yield Refusal("images", pointer, message)
        for key, values in rules.required_labels.items():
            if message := _label_fault(by, key, values, asked.labels.get(key)):
                yield Refusal("required_labels", "/labels", message)
        for name in rules.forbidden_fields:
            if name in asked.given:
                message = f"{name} is left to Berth: {by} does not permit to say it."
                yield Refusal("forbidden_fields", asked.given[name], message)


def in_force(chain: Sequence[Said]) -> tuple[InForce, ...]:
    """All that holds, in the order of `Rules`. Of numbers the tightest; of what several say of
    images, classes, labels and fields each is told, for all of it holds; of defaults the nearest,
    as they are with the limits."""
    found: list[InForce] = []
    for number in ("max_run_time_s", "max_gpus_milli", "max_pods"):
        least = _least(chain, number)
        if least:
            found.append(InForce(number, least.value, least.by))
    for rule in ("priority_classes", "images", "required_labels", "forbidden_fields"):
        values = ((by, getattr(rules, rule)) for by, rules in _each(chain))
        found += [InForce(rule, value, by) for by, value in values if value]
    run_time = _default_run_time(chain)
    if run_time:
        found.append(InForce("default_run_time_s", run_time.value, run_time.by))
    name, by = _default_class(chain)
    if by:
        found.append(InForce("default_priority_class", name, by))
    for key, (value, by) in _default_labels(chain).items():
        found.append(InForce("default_labels", {key: value}, by))
    return tuple(found)


def loosened(above: Sequence[Said], rules: Rules) -> list[Refusal]:
    """What of the rules would permit what those above do not: said in vain, so it is refused. Its
    pointer is that of the rule."""
    found: list[Refusal] = []

    def refuse(rule: str, message: str) -> None:
        found.append(Refusal(rule, f"/{rule}", message))

    for rule, bound in _BOUNDS:
        least, own = _least(above, bound), getattr(rules, rule)
        if least and own is not None and own > least.value:
            most = in_words(bound, least.value)
            refuse(rule, f"{in_words(rule, own)} is more than the {most} that {least.by} permits.")
    for by, theirs in _each(above):
        if theirs.priority_classes:
            permitted = ", ".join(theirs.priority_classes)
            for rule, names in (
                ("priority_classes", rules.priority_classes),
                ("default_priority_class", filter(None, [rules.default_priority_class])),
            ):
                for name in names:
                    if name not in theirs.priority_classes:
                        refuse(rule, f"{name} is none of those that {by} permits: {permitted}.")
        for image in rules.images if theirs.images else ():
            if not any(_covers(each, image) for each in theirs.images):
                permitted = ", ".join(theirs.images)
                refuse("images", f"{image} is wider than what {by} permits: {permitted}.")
        for key, values in theirs.required_labels.items():
            for value in rules.required_labels.get(key, ()):
                if message := _label_fault(by, key, values, value):
                    refuse("required_labels", message)
            if key in rules.default_labels and (
                message := _label_fault(by, key, values, rules.default_labels[key])
            ):
                refuse("default_labels", message)
    return found


_BOUNDS = (
    ("max_run_time_s", "max_run_time_s"),
    ("default_run_time_s", "max_run_time_s"),
    ("max_gpus_milli", "max_gpus_milli"),
    ("max_pods", "max_pods"),
)
"""Numbers, and which of those above bounds each."""


UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
"""Seconds each."""


def in_words(rule: str, number: int) -> str:
    """A number of that rule: 12 h, 4.5 GPUs without their name, 1,024 pods without theirs."""
    if rule.endswith("_s"):
        return span(number)
    return in_gpus(number) if rule.endswith("_milli") else f"{number:,}"


def span(seconds: int) -> str:
    """In the largest unit that is exact: 12 h, 90 min."""
    unit = next(each for each in reversed(UNITS) if seconds % UNITS[each] == 0)
    return f"{seconds // UNITS[unit]} {unit}"


def in_gpus(milli: int) -> str:
    """Without zeros behind the point: 8, 4.5."""
    return f"{milli / 1000:,.3f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class _Number:
    value: int
    by: str


def _each(chain: Iterable[Said]) -> Iterable[tuple[str, Rules]]:
    return ((said.by, said.rules) for said in chain)


def _least(chain: Iterable[Said], name: str) -> _Number | None:
    """The smallest that any says, and who of them first; None where none does."""
    said = ((by, getattr(rules, name)) for by, rules in _each(chain))
    numbers = [_Number(value, by) for by, value in said if value is not None]
    return min(numbers, key=lambda number: number.value, default=None)


def _default_run_time(chain: Sequence[Said]) -> _Number | None:
    most = _least(chain, "max_run_time_s")
    for by, rules in _each(reversed(chain)):
        if rules.default_run_time_s is not None:
            own = _Number(rules.default_run_time_s, by)
            return most if most and most.value < own.value else own
    return most


def _default_class(chain: Sequence[Said]) -> tuple[str, str]:
    """And whose word that is, "" where it is nobody's. What is not permitted gives way to the next
    lower class that is, else to the lowest."""
    said = (each for each in _each(reversed(chain)) if each[1].default_priority_class)
    by, name = next(((by, rules.default_priority_class) for by, rules in said), ("", "normal"))
    limits = [each for each in _each(chain) if each[1].priority_classes]
    refusing = [who for who, rules in limits if name not in rules.priority_classes]
    permitted = [
        each
        for each in PRIORITY_CLASSES
        if all(each in rules.priority_classes for _, rules in limits)
    ]
    if not refusing or not permitted:
        return name, by
    rank = PRIORITY_CLASSES.index(name)
    lower = [each for each in permitted if PRIORITY_CLASSES.index(each) < rank]
    return (lower or permitted[:1])[-1], refusing[0]


def _default_labels(chain: Iterable[Said]) -> dict[str, tuple[str, str]]:
    """Key → its value, and whose word that is: of those that all permit."""
    permitted = [rules.required_labels for _, rules in _each(chain)]
    return {
        key: (value, by)
        for by, rules in _each(chain)
        for key, value in rules.default_labels.items()
        if all(value in (each.get(key) or (value,)) for each in permitted)
    }


def _covers(pattern: str, image: str) -> bool:
    """Whether the pattern permits the image, or all that another pattern permits."""
    if not pattern.endswith("*"):
        return image == pattern
    begins = pattern.removesuffix("*")
    # A tag or digest has no /: what looks like one is a registry's port.
    rest = image.removeprefix(begins)
    return image.startswith(begins) and (begins.endswith("/") or "/" not in rest)


def _label_fault(by: str, key: str, values: Sequence[str], value: str | None) -> str:
    """What is wrong with the value of a label that has to be there, "" if nothing is."""
    one_of = f", which is one of {', '.join(values)}" if values else ""
    if not value:
        return f"{by} wants a label {key}{one_of}."
    if values and value not in values:
        return f"{value} is no {key} that {by} permits: {', '.join(values)}."
    return ""
