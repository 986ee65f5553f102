"""The form of a recut: which node, how, and when. The service checks whether it can be cut so."""

import re

from django import forms

from controlplane.kernel.forms import StrictForm, moment
from scheduler.core.node.ways import Way
from scheduler.models import RecutMode
from scheduler.selectors.recuts import alike

_LINE = re.compile(r"([1-9][0-9]{0,2})\s*:\s*(whole|[0-9a-z.+=\s]+)")
_SLICES = re.compile(r"([0-9]{1,2}g\.[0-9]{1,4}gb(?:\+[a-z.]{2,12})?)=([1-8])")
_EXAMPLE = "4: 3g.40gb=2"


class NodeForm(StrictForm):
    """A node, and a line for its GPUs that are cut alike."""

    node = forms.CharField(max_length=253)
    devices = forms.CharField(
        label="How its GPUs are cut",
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="A line for GPUs that are cut alike: how many, then their slices, as"
        f" “{_EXAMPLE}” or “4: whole”.",
    )

    @property
    def cuts(self) -> list[dict[str, int]]:
        found: list[dict[str, int]] = self.cleaned_data["devices"]
        return found

    def clean_devices(self) -> list[dict[str, int]]:
        cuts: list[dict[str, int]] = []
        for line in self.cleaned_data["devices"].splitlines():
            match = _LINE.fullmatch(line.strip())
            words = [] if match is None or match[2] == "whole" else match[2].split()
            slices = [_SLICES.fullmatch(word) for word in words]
            if match is None or None in slices:
                raise forms.ValidationError(
                    f"“{line.strip()[:60]}” is no such line: write “{_EXAMPLE}”, or “4: whole”.",
                    code="invalid",
                )
            cut = {found[1]: int(found[2]) for found in slices if found is not None}
            cuts += [dict(cut) for _ in range(int(match[1]))]
        return cuts


class RecutForm(NodeForm):
    """Moments are in the reader's own time zone."""

    mode = forms.ChoiceField(
        label="What runs there",
        choices=[
            (RecutMode.WAIT.value, "is waited for"),
            (
                RecutMode.PREEMPT.value,
                "is preempted, once all that is left there may be; else waited for",
            ),
        ],
    )
    starts_at = moment("From", "Nothing is done before.")
    ends_at = moment("Until", "If it is not empty by then, it is left as it is. A week at most.")


def lines(ways: tuple[Way, ...]) -> str:
    """As the form takes it."""
    return "\n".join(
        f"{count}: " + (" ".join(f"{name}={number}" for name, number in way) or "whole")
        for count, way in alike(ways)
    )
