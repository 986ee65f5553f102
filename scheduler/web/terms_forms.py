"""The part of the submit form on what and whom it waits for, on failing and on being stopped: the
fields of `terms`, of `depends_on`, and of one of `gates`, as a person types them."""

import re
from collections.abc import Sequence
from typing import Any

from django import forms

from controlplane.kernel.forms import StrictForm
from scheduler.core.failures import MOST_RETRIES, REQUEUE_S, RETRIABLE, RETRIES, WORDS
from scheduler.selectors.arrays import AFTER_TEXTS
from scheduler.services import specs
from tenants.gating import KINDS, MAX_DECIDE_S

TERMS_PLACES: Sequence[tuple[str, str]] = (
    (r"/notice_s", "notice_s"),
    (r"/grace_s", "grace_s"),
    (r"/cluster_loss_requeue_s", "cluster_loss_minutes"),
    (r"/retries/limit", "retry_limit"),
    (r"/retries/exit_codes\b.*", "retry_codes"),
    (r"/retries\b.*", "retry_on"),
    (r"/depends_on/\d+/kind", "after_kind"),
    (r"/depends_on/\d+/by_index", "after_by_index"),
    (r"/depends_on\b.*", "after"),
    (r"/gates/0/kind", "gate_kind"),
    (r"/gates/0/owner", "gate_owner"),
    (r"/gates/0/within_s", "gate_hours"),
    (r"/gates\b.*", "gate"),
)
"""As `forms._PLACES`, of the fields here."""
_WORK = re.compile(r"(?:(array:)|\S*/(workloads|arrays)/)?([0-9a-fA-F-]{36})/?")


class TermsForm(StrictForm):
    """`terms` is what it says; call it after `is_valid`."""

    notice_s = forms.IntegerField(
        label="Notice before that, seconds", required=False, max_value=specs.MAX_NOTICE_S,
        min_value=0, help_text="It is told, and may save its work. Empty: none.",
    )  # fmt: skip
    grace_s = forms.IntegerField(
        label="Grace, seconds", initial=specs.GRACE_S, min_value=specs.MIN_GRACE_S,
        max_value=specs.MAX_GRACE_S, required=False,
        help_text="From SIGTERM to SIGKILL, whenever its pods are stopped.",
    )  # fmt: skip
    cluster_loss_minutes = forms.IntegerField(
        label="If its cluster is lost, start elsewhere after, minutes", required=False,
        min_value=REQUEUE_S[0] // 60, max_value=REQUEUE_S[1] // 60,
        help_text="Of silence. What it holds there stays charged until it is seen gone, and may"
        " run on until then. Empty: it waits for its cluster.",
    )  # fmt: skip
    after_kind = forms.ChoiceField(
        label="Start", required=False, initial=specs.AFTER[0],
        choices=[(kind, AFTER_TEXTS[kind]) for kind in specs.AFTER],
        help_text="All of an array counts as one, and is done when all of it is.",
    )  # fmt: skip
    after = forms.CharField(
        label="This work", required=False, max_length=4000,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text="One a line: its page's address, its id, or array: and an array's id.",
    )  # fmt: skip
    after_by_index = forms.BooleanField(
        required=False, label="Each element after the one of its index",
        help_text="Of an array after an array of the same size or a larger one.",
    )  # fmt: skip
    after_hold = forms.BooleanField(
        required=False, label="Hold it if that can't come any more",
        help_text="Until it is released. Not ticked: it is cancelled then.",
    )  # fmt: skip
    gate = forms.CharField(
        label="Gate", required=False, max_length=40,
        help_text="A name for it, as data-ready. Its project's gates come by themselves.",
    )  # fmt: skip
    gate_kind = forms.ChoiceField(
        label="It is about", required=False, initial=KINDS[-1],
        choices=[(kind, kind.capitalize()) for kind in KINDS],
        help_text="An approval is for somebody else than you to give.",
    )  # fmt: skip
    gate_owner = forms.CharField(
        label="Who opens it", required=False, max_length=150,
        help_text="The name of somebody with a role in the project.",
    )  # fmt: skip
    gate_hours = forms.IntegerField(
        label="Within, hours", required=False, min_value=1, max_value=MAX_DECIDE_S // 3600,
        help_text="Not opened by then, it is cancelled. Empty: it waits.",
    )  # fmt: skip
    retry_limit = forms.IntegerField(
        label="Tries after a failure", initial=RETRIES.limit, min_value=0, max_value=MOST_RETRIES,
        required=False, help_text="Lost nodes do not count. Empty: as many as shown at first.",
    )  # fmt: skip
    retry_on = forms.MultipleChoiceField(
        label="Try again when", required=False, initial=[each.value for each in RETRIES.on],
        widget=forms.CheckboxSelectMultiple,
        choices=[(each.value, WORDS[each].capitalize()) for each in RETRIABLE],
        help_text="None ticked: never, not even when its node was lost.",
    )  # fmt: skip
    retry_codes = forms.CharField(
        label="Or when it ends with exit code", required=False, max_length=300,
        help_text="One or more from 1 to 255, such as 75, 143.",
    )  # fmt: skip

    def clean_after(self) -> list[dict[str, str]]:
        """As `depends_on`, without how."""
        found = []
        for number, line in enumerate(self.cleaned_data["after"].splitlines(), start=1):
            if not line.strip():
                continue
            read = _WORK.fullmatch(line.strip())
            if read is None:
                raise forms.ValidationError(
                    f"Line {number} is neither an id of 36 characters nor the address of a"
                    " workload or an array."
                )
            prefix, page, id = read.groups()
            found.append({"array" if prefix or page == "arrays" else "workload": id})
        return found

    def clean_retry_codes(self) -> list[int]:
        words = self.cleaned_data["retry_codes"].replace(",", " ").split()
        for word in words:
            if not (word.isascii() and word.isdecimal() and len(word) <= 3):
                raise forms.ValidationError(
                    f"{word[:20]!a} is not an exit code: 1 to 255 is wanted, with a comma"
                    " between two."
                )
        return [int(word) for word in words]

    def _gates(self) -> list[dict[str, Any]]:  # Any: JSON values
        """The one of the form, none without a name and an owner."""
        name, owner = self.cleaned_data["gate"].strip(), self.cleaned_data["gate_owner"].strip()
        hours = self.cleaned_data["gate_hours"]
        if not name and not owner:
            return []
        kind = self.cleaned_data["gate_kind"] or KINDS[-1]
        within_s = None if hours is None else hours * 3600
        return [{"name": name, "kind": kind, "owner": owner, "within_s": within_s}]

    def terms(self) -> dict[str, Any]:  # Any: JSON values
        """A part of the mapping that `serializers.parse` reads."""
        cleaned = self.cleaned_data
        limit, minutes = cleaned["retry_limit"], cleaned["cluster_loss_minutes"]
        how = {
            "kind": cleaned["after_kind"] or specs.AFTER[0],
            "by_index": cleaned["after_by_index"],
            "on_unmet": specs.ON_UNMET[cleaned["after_hold"]],
        }
        return {
            "notice_s": cleaned["notice_s"] or 0,
            "grace_s": cleaned["grace_s"] or specs.GRACE_S,
            "cluster_loss_requeue_s": None if minutes is None else minutes * 60,
            "depends_on": [one | how for one in cleaned["after"]],
            "gates": self._gates(),
            "retries": {
                "limit": RETRIES.limit if limit is None else limit,
                "on": cleaned["retry_on"],
                "exit_codes": cleaned["retry_codes"],
            },
        }
