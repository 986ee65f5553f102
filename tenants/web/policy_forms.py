"""The form of what may be submitted. The service checks what it says; this converts."""

import re
from collections.abc import Iterable, Mapping

from django import forms

from controlplane.kernel.forms import StrictForm, named_lines
from scheduler.core.units import ONE_MILLI
from tenants.policy import (
    FIELDS,
    MAX_GPUS_MILLI,
    MAX_PODS,
    PRIORITY_CLASSES,
    UNITS,
    Rules,
    in_gpus,
    span,
)

_SPAN = re.compile(rf"([0-9]{{1,9}}) *({'|'.join(UNITS)})?")
_CLASSES = [(name, name.capitalize()) for name in PRIORITY_CLASSES]
_AREA = {"rows": 3, "spellcheck": "false"}


class Span(forms.Field):
    """Seconds, written with a unit: 90 min, 12 h. Without one they are hours."""

    def to_python(self, value: object) -> int | None:
        text = str(value or "").strip()
        if not text:
            return None
        found = _SPAN.fullmatch(text)
        if found is None:
            raise forms.ValidationError("A whole number and s, min, h or d, such as 12 h.")
        return int(found[1]) * UNITS[found[2] or "h"]

    def prepare_value(self, value: object) -> object:
        return span(value) if isinstance(value, int) else value


class PolicyForm(StrictForm):
    max_run_time_s = Span(
        label="Runs at most", required=False,
        help_text="Such as 90 min, 12 h or 7 d. What says no limit has this one.",
    )  # fmt: skip
    default_run_time_s = Span(
        label="Run-time limit of what says none", required=False,
        help_text="Empty: the most.",
    )  # fmt: skip
    max_gpus = forms.DecimalField(
        label="GPUs of one workload at most", required=False, decimal_places=3,
        min_value=0, max_value=MAX_GPUS_MILLI // ONE_MILLI,
        help_text="A slice or share is the part of a GPU that it takes.",
    )  # fmt: skip
    max_pods = forms.IntegerField(
        label="Pods of one workload at most", required=False, min_value=1, max_value=MAX_PODS
    )
    priority_classes = forms.MultipleChoiceField(
        label="Priorities that are permitted", required=False, choices=_CLASSES,
        widget=forms.CheckboxSelectMultiple, help_text="None ticked: all.",
    )  # fmt: skip
    default_priority_class = forms.ChoiceField(
        label="Priority of what says none", required=False,
        choices=[("", "as above it, else normal"), *_CLASSES],
    )  # fmt: skip
    images = forms.CharField(
        label="Images that are permitted", required=False, max_length=70_000,
        widget=forms.Textarea(attrs=_AREA),
        help_text="One a line, as they are written, or a beginning that ends with /*, :* or @*."
        " Empty: all.",
    )  # fmt: skip
    required_labels = forms.CharField(
        label="Labels that are wanted", required=False, max_length=70_000,
        widget=forms.Textarea(attrs=_AREA),
        help_text="One a line: cost-centre: 4711, 4712. Without values any will do.",
    )  # fmt: skip
    default_labels = forms.CharField(
        label="Labels of what does not have them", required=False, max_length=20_000,
        widget=forms.Textarea(attrs=_AREA), help_text="One a line: cost-centre: 4711.",
    )  # fmt: skip
    forbidden_fields = forms.MultipleChoiceField(
        label="Left to Berth", required=False, widget=forms.CheckboxSelectMultiple,
        choices=[(name, name.replace("_", " ").removesuffix(" s")) for name in FIELDS],
        help_text="What nobody says for their work.",
    )  # fmt: skip
    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0, max_value=2**31 - 1)

    pointers = {"/max_gpus_milli": "max_gpus"}

    @classmethod
    def of(cls, rules: Rules, *, version: int) -> "PolicyForm":
        gpus = rules.max_gpus_milli
        labels = rules.required_labels.items()
        return cls(
            initial={
                "max_run_time_s": rules.max_run_time_s,
                "default_run_time_s": rules.default_run_time_s,
                "max_gpus": None if gpus is None else in_gpus(gpus).replace(",", ""),
                "max_pods": rules.max_pods,
                "priority_classes": list(rules.priority_classes),
                "default_priority_class": rules.default_priority_class,
                "images": "\n".join(rules.images),
                "required_labels": _text((key, ", ".join(values)) for key, values in labels),
                "default_labels": _text(rules.default_labels.items()),
                "forbidden_fields": list(rules.forbidden_fields),
                "version": version,
            }
        )

    def clean_images(self) -> tuple[str, ...]:
        found = (line.strip() for line in self.cleaned_data["images"].splitlines())
        return tuple(line for line in found if line)

    def clean_required_labels(self) -> Mapping[str, tuple[str, ...]]:
        said = named_lines(self.cleaned_data["required_labels"], sign=":")
        return {
            key: tuple(value for each in values.split(",") if (value := each.strip()))
            for key, values in said.items()
        }

    def clean_default_labels(self) -> Mapping[str, str]:
        said = named_lines(self.cleaned_data["default_labels"], sign=":", like="label: value")
        return {key: value.strip() for key, value in said.items()}

    @property
    def rules(self) -> Rules:
        said = dict(self.cleaned_data)
        gpus = said.pop("max_gpus")
        del said["version"]
        said["priority_classes"] = tuple(said["priority_classes"])
        said["forbidden_fields"] = tuple(said["forbidden_fields"])
        return Rules(max_gpus_milli=None if gpus is None else int(gpus * ONE_MILLI), **said)


def _text(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{key}: {value}" if value else key for key, value in pairs)
