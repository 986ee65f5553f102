"""The submit form. It makes the mapping that `serializers.parse` reads, and shows the problems of
that parser and of the service beside its fields; it checks only what it has to convert itself.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from django import forms

from clusters.models import VENDORS, FlavorKind
from controlplane.kernel.forms import Posted, named_lines
from scheduler.selectors.offers import Offer, by_name
from scheduler.services import specs
from scheduler.services.modes import Mode
from scheduler.services.specs import ArraySpec
from scheduler.web.comparisons import TITLES
from scheduler.web.terms_forms import TERMS_PLACES, TermsForm
from tenants.models import Project

LIMIT_UNITS = {"minutes": 60, "hours": 3600, "days": 86_400}
POD_SET = "main"
GB, MIB = 10**9, 2**20
MAX_DEVICE_GB = 10**6
"""Makers count in powers of ten, and what is called 80 GB has no less than that."""
SUMMED = (
    "project", "count", "gpus", "share_milli", "share_gb", "least_isolation", "cpu", "limit",
    "limit_unit",
)  # fmt: skip
"""The fields, next to the flavor, that the estimate follows from. Only these go into its address,
so that no command or environment ends in a log."""
SIZED_BY = {
    FlavorKind.WHOLE: "gpus", FlavorKind.MIG: "gpus", FlavorKind.SHARE: "share_milli",
}  # fmt: skip
"""The field that says how much of the flavor a pod gets; CPU work is sized by its cores."""
_PLACES: Sequence[tuple[str, str]] = (
    (r"/name", "name"),
    (r"/priority_class", "priority_class"),
    (r"/preemptible", "mode"),
    (r"/move_to_better", "move_to_better"),
    (r"/run_time_limit_s", "limit"),
    (r"/clusters\b.*", "clusters"),
    (r"/labels\b.*", "labels"),
    (r"/topology\b.*", "together"),
    (r"/pod_sets/0/topology/group_size", "group_size"),
    (r"/pod_sets/0/topology\b.*", "grouped"),
    (r"/pod_sets/0/count", "count"),
    (r"/pod_sets/0/min_count", "min_count"),
    (r"/pod_sets/0/cpu_milli", "cpu"),
    (r"/pod_sets/0/memory_mib", "memory_gib"),
    (r"/pod_sets/0/gpu_count", "gpus"),
    (r"/pod_sets/0/gpu_milli", "share_milli"),
    (r"/pod_sets/0/gpu_memory_mib", "share_gb"),
    (r"/pod_sets/0/least_isolation", "least_isolation"),
    (r"/pod_sets/0/wish/vendors\b.*", "vendors"),
    (r"/pod_sets/0/wish\b.*", "least_gb"),
    (r"/pod_sets/0/flavors/1", "second"),
    (r"/pod_sets/0/flavors/2", "third"),
    (r"/pod_sets/0/any_order", "any_order"),
    (r"/pod_sets/0/flavors\b.*", "flavor"),
    (r"/pod_sets/0/image", "image"),
    (r"/pod_sets/0/(command|args)\b.*", "command"),
    (r"/pod_sets/0/env\b.*", "env"),
    *TERMS_PLACES,
)
"""Where in a submission (behind the spec's index, if any) each field of the form lies."""


class SubmitForm(TermsForm):
    """One workload with one pod set. `specification` is what it says; call it after `is_valid`."""

    project = forms.ChoiceField()
    name = forms.CharField(max_length=100, initial="")
    flavor = forms.ChoiceField(widget=forms.RadioSelect, required=False)
    second = forms.ChoiceField(label="If that is full, also accept", required=False)
    third = forms.ChoiceField(label="and then", required=False)
    any_order = forms.BooleanField(
        required=False, label="One of these is as welcome as another",
        help_text="It starts on the one where it leaves most to others, whatever each costs.",
    )  # fmt: skip
    least_gb = forms.IntegerField(
        label="and then any GPU with at least, GB", required=False, min_value=0,
        max_value=MAX_DEVICE_GB,
        help_text="The smallest first, then the cheapest; also one that comes later. 0: any.",
    )  # fmt: skip
    vendors = forms.MultipleChoiceField(
        label="made by", required=False, widget=forms.CheckboxSelectMultiple,
        choices=[(vendor, vendor) for vendor in VENDORS], help_text="None ticked: by anybody.",
    )  # fmt: skip
    count = forms.IntegerField(
        label="Pods", initial=1, min_value=1, max_value=specs.MAX_PODS,
        help_text="More than one is a gang: they start together or not at all.",
    )  # fmt: skip
    min_count = forms.IntegerField(
        label="Start with at least", required=False, min_value=1, max_value=specs.MAX_PODS,
        help_text="Pods, of what is elastic or semi-preemptible: the others come and go.",
    )  # fmt: skip
    gpus = forms.IntegerField(
        label="GPUs or slices per pod", initial=1, min_value=1,
        max_value=specs.MAX_GPUS_PER_POD,
    )  # fmt: skip
    share_milli = forms.IntegerField(
        label="Share of a GPU per pod", initial=500, min_value=1, max_value=1000,
        help_text="In thousandths: 250 is a quarter.",
    )  # fmt: skip
    share_gb = forms.IntegerField(
        label="or GPU memory per pod, GB", required=False, min_value=1, max_value=MAX_DEVICE_GB,
        help_text="The least share that has it, of each flavor another. Empty: by the share.",
    )  # fmt: skip
    least_isolation = forms.ChoiceField(
        label="Between neighbours on one GPU", required=False,
        choices=[
            ("none", "what the project accepts"),
            ("memory", "at least memory limits"),
            ("hardware", "hardware"),
        ],
        help_text="Flavors that isolate less are passed over.",
    )  # fmt: skip
    cpu = forms.DecimalField(
        label="CPU cores per pod", initial=Decimal(4), min_value=Decimal("0.001"),
        max_value=Decimal(4096), decimal_places=3,
    )  # fmt: skip
    memory_gib = forms.DecimalField(
        label="Memory per pod, GiB", initial=Decimal(16), min_value=Decimal("0.001"),
        max_value=Decimal(65_536), decimal_places=3,
    )  # fmt: skip
    image = forms.CharField(max_length=300)
    command = forms.CharField(
        label="Command line", required=False, max_length=8192, strip=True,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text="Empty runs the image's own. Quotes work as in a shell; nothing is expanded.",
    )  # fmt: skip
    env = forms.CharField(
        label="Environment", required=False, max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="NAME=value, one a line. No secrets: the project's members can read it by API.",
    )  # fmt: skip
    labels = forms.CharField(
        required=False, max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text="One a line, such as team: vision. Its project's policy may want some.",
    )  # fmt: skip
    limit = forms.DecimalField(
        label="Run-time limit", required=False, min_value=Decimal("0.01"),
        max_value=Decimal(129_600), decimal_places=2,
        help_text="Stopped after that. A limit lets it go ahead where room is kept for others.",
    )  # fmt: skip
    limit_unit = forms.ChoiceField(
        label="Unit of the limit", choices=[(unit, unit) for unit in LIMIT_UNITS], initial="hours"
    )
    priority_class = forms.ChoiceField(
        label="Priority", required=False,
        choices=[
            ("", "as the policy says, else normal"),
            *((name, name.capitalize()) for name in specs.PRIORITY_CLASSES),
        ],
    )  # fmt: skip
    mode = forms.ChoiceField(
        label="Mode", initial=Mode.PREEMPTIBLE.value, widget=forms.RadioSelect,
        choices=[(mode.value, TITLES[mode]) for mode in Mode],
    )  # fmt: skip
    move_to_better = forms.BooleanField(
        required=False, label="Move to a flavor I prefer when one is free",
        help_text="Stopped and started again, once a day at most, where nobody waits for it and"
        " little work since its last checkpoint would be lost.",
    )  # fmt: skip
    clusters = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, label="Clusters",
        help_text="None ticked: any of them.",
    )  # fmt: skip
    array_size = forms.IntegerField(
        label="As an array of", required=False, min_value=1, max_value=specs.MAX_ELEMENTS,
        help_text="So many of it, each with its index in BERTH_ARRAY_INDEX. The price is of one.",
    )  # fmt: skip
    most_at_once = forms.IntegerField(
        label="At most at once", required=False, min_value=1, max_value=specs.MAX_ELEMENTS,
        help_text="Of the array. Empty: as many as fit.",
    )  # fmt: skip
    together = forms.ChoiceField(
        label="All pods in one", required=False,
        help_text="Keeps a gang close: the same rack, or the same NVLink domain.",
    )  # fmt: skip
    together_only = forms.BooleanField(
        required=False, initial=True, label="Wait for that rather than start apart",
    )  # fmt: skip
    group_size = forms.IntegerField(
        label="Pods in groups of", required=False, min_value=1, max_value=specs.MAX_PODS,
        help_text="By rank, such as the pods of one replica. Empty: no groups.",
    )  # fmt: skip
    grouped = forms.ChoiceField(
        label="Each group in one", required=False, help_text="Different groups may be apart.",
    )  # fmt: skip
    grouped_only = forms.BooleanField(
        required=False, initial=True, label="Wait for that rather than tear groups apart",
    )  # fmt: skip

    def __init__(
        self,
        data: Posted = None,
        files: Posted = None,
        *,
        projects: Iterable[Project],
        offers: Sequence[Offer],
        clusters: Iterable[str],
        levels: Iterable[str],
        preferred: Mapping[str, Sequence[str]],
        initial: dict[str, object] | None = None,
    ) -> None:
        """`preferred` are the whole GPUs that each project prefers, by its id."""
        super().__init__(data, files, initial=initial)
        self.order_fields([name for name in self.fields if name not in TermsForm.base_fields])
        self.offers, self.preferred = offers, preferred
        names = [(offer.name, offer.name) for offer in offers]
        self.projects = {str(one.id): one for one in projects}
        self.choose("project", [(id, one.full_name) for id, one in self.projects.items()])
        self.choose("flavor", [("", "none by name"), *names])
        self.choose("second", [("", "nothing else"), *names])
        self.choose("third", [("", "nothing else"), *names])
        self.choose("clusters", [(name, name) for name in clusters])
        places_of_level = [("", "anywhere"), *((level, level) for level in levels)]
        self.choose("together", places_of_level)
        self.choose("grouped", places_of_level)
        for name in SUMMED:
            self.fields[name].widget.attrs["data-sum"] = True

    def clean_command(self) -> list[str]:
        try:
            return shlex.split(self.cleaned_data["command"])
        except ValueError as error:
            raise forms.ValidationError(f"A quote is not closed ({error}).") from error

    def clean_env(self) -> dict[str, str]:
        return named_lines(self.cleaned_data["env"], sign="=", like="NAME=value")

    def clean_labels(self) -> dict[str, str]:
        said = named_lines(self.cleaned_data["labels"], sign=":", like="label: value")
        return {key: value.strip() for key, value in said.items()}

    def clean(self) -> dict[str, Any]:  # Any: cleaned values
        """What the chosen flavor has no use for is not looked at: its fields may be hidden."""
        cleaned = super().clean()
        offer = by_name(self.offers, cleaned.get("flavor", ""))
        if offer is not None:
            sized_by = SIZED_BY.get(FlavorKind(offer.kind))
            by_memory = {"share_milli"} if cleaned.get("share_gb") else set()
            for field in {"gpus", "share_milli"} - {sized_by} | by_memory:
                self.errors.pop(field, None)
            if sized_by != "share_milli":
                self.errors.pop("share_gb", None)
        self._check_named(cleaned)
        if cleaned.get("vendors") and cleaned.get("least_gb") is None:
            self.add_error("vendors", "Say with how much memory; 0 is any.")
        self._check_groups(cleaned)
        self._check_least(cleaned)
        size, most = cleaned.get("array_size"), cleaned.get("most_at_once")
        if most and "array_size" not in self.errors and most > (size or 0):
            self.add_error("most_at_once", f"At most the size of the array: {size or 'none'}.")
        return cleaned

    def _check_named(self, cleaned: Mapping[str, Any]) -> None:  # Any: cleaned values
        """A flavor, unless it may have any GPU of a size, or those that the project prefers."""
        if cleaned.get("flavor") or "flavor" in self.errors:
            return
        others = [name for name in ("second", "third") if cleaned.get(name)]
        for name in others:
            self.add_error(name, "Choose a flavor before it, above.")
        wishes = cleaned.get("least_gb") is not None
        if not others and not wishes and not self.preferred.get(cleaned.get("project", "")):
            self.add_error("flavor", "Choose a flavor.")

    def _check_groups(self, cleaned: Mapping[str, Any]) -> None:  # Any: cleaned values
        size, level = cleaned.get("group_size"), cleaned.get("grouped")
        if level and not size and "group_size" not in self.errors:
            self.add_error("group_size", "Say how many pods a group has.")
        if size and not level:
            self.add_error("grouped", "Say what each group has to be in.")

    def _check_least(self, cleaned: Mapping[str, Any]) -> None:  # Any: cleaned values
        """Without a mode that has a least it is not looked at."""
        if "mode" not in cleaned:
            return
        mode, count = Mode(cleaned["mode"]), cleaned.get("count")
        if not mode.elastic:
            self.errors.pop("min_count", None)
        elif "min_count" not in self.errors and cleaned.get("min_count") in (None, count):
            told = (
                f"Say with how many pods it starts at least, fewer than all {count or ''}".rstrip()
            )
            self.add_error("min_count", f"{told}: what is {mode.value} has pods beyond that.")

    @property
    def array(self) -> ArraySpec | None:
        """None for a single workload."""
        size = self.cleaned_data["array_size"]
        return ArraySpec(size, self.cleaned_data["most_at_once"]) if size else None

    def specification(self, *, mode: Mode | None = None) -> dict[str, Any]:  # Any: JSON values
        """The mapping that `serializers.parse` reads; in another mode than the chosen one."""
        cleaned = self.cleaned_data
        mode = mode or Mode(cleaned["mode"])
        offer = by_name(self.offers, cleaned["flavor"])
        kind = offer.kind if offer else FlavorKind.WHOLE
        pod_set: dict[str, Any] = {
            "name": POD_SET,
            "count": cleaned["count"],
            "cpu_milli": int(cleaned["cpu"] * 1000),
            "memory_mib": int(cleaned["memory_gib"] * 1024),
            "gpu_count": _gpu_count(FlavorKind(kind), cleaned),
            "flavors": [
                name for name in (cleaned["flavor"], cleaned["second"], cleaned["third"]) if name
            ],
            "image": cleaned["image"],
            "command": cleaned["command"],
            "env": cleaned["env"],
        }
        if kind == FlavorKind.SHARE and cleaned["share_gb"]:
            pod_set["gpu_memory_mib"] = mib_of(cleaned["share_gb"])
        elif kind == FlavorKind.SHARE:
            pod_set["gpu_milli"] = cleaned["share_milli"]
        if cleaned["least_isolation"]:
            pod_set["least_isolation"] = cleaned["least_isolation"]
        if kind in {FlavorKind.WHOLE, FlavorKind.MIG} and cleaned["least_gb"] is not None:
            pod_set["wish"] = {
                "least_memory_mib": cleaned["least_gb"] * GB // MIB,
                "vendors": cleaned["vendors"],
            }
        if cleaned["any_order"]:
            pod_set["any_order"] = True
        if topology := _topology(cleaned["grouped"], required=cleaned["grouped_only"]):
            pod_set["topology"] = {**topology, "group_size": cleaned["group_size"]}
        if mode.elastic:
            pod_set["min_count"] = cleaned["min_count"]
        limit = cleaned["limit"]
        unit_s = LIMIT_UNITS[cleaned["limit_unit"]]
        of_policy = {} if cleaned["priority_class"] == "" else {
            "priority_class": cleaned["priority_class"]
        }  # fmt: skip
        return {
            "name": cleaned["name"],
            **of_policy,
            "preemptible": mode.preemptible,
            "move_to_better": cleaned["move_to_better"],
            "run_time_limit_s": None if limit is None else max(1, int(limit * unit_s)),
            **self.terms(),
            "clusters": cleaned["clusters"],
            "labels": cleaned["labels"],
            "topology": _topology(cleaned["together"], required=cleaned["together_only"]),
            "pod_sets": [pod_set],
        }

    def comparable(self) -> dict[str, Any]:  # Any: JSON values
        """As `specification`, with the least that was said, so that it may be asked for in each
        mode."""
        mode, least = Mode(self.cleaned_data["mode"]), self.cleaned_data.get("min_count")
        if least and least < self.cleaned_data["count"]:
            mode = Mode.ELASTIC if mode.preemptible else Mode.SEMI
        return self.specification(mode=mode)

    @staticmethod
    def field_of(pointer: str) -> str | None:
        path = re.sub(r"^/\d+(?=/|$)", "", pointer)
        return next((field for pattern, field in _PLACES if re.fullmatch(pattern, path)), None)


def mib_of(gb: int) -> int:
    """Of a maker's GB, in whole MiB that have as much."""
    return -(-gb * GB // MIB)


def _topology(level: str, *, required: bool) -> dict[str, str] | None:
    return {"level": level, "mode": "required" if required else "preferred"} if level else None


def _gpu_count(kind: FlavorKind, cleaned: Mapping[str, Any]) -> int:  # Any: cleaned values
    if kind in {FlavorKind.CPU, FlavorKind.SHARE}:
        return 0 if kind == FlavorKind.CPU else 1
    count: int = cleaned["gpus"]
    return count
