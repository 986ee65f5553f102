"""The forms of requests for quota, asked and answered. The services check what they say; these
convert. Amounts are in whole units of the flavor, moments in the reader's own time zone."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms

from clusters.models import Flavor
from controlplane.kernel.forms import Posted, StrictForm, moment
from scheduler.core.reasons import in_units
from tenants.models import Project, QuotaRequest
from tenants.selectors.requests import QuotaRequestLine
from tenants.services import previews, quotas, requests
from tenants.services.answers import Chosen
from tenants.services.grants import Allotment
from tenants.services.previews import Previewed
from tenants.services.requests import Given, Seen

_MOST = Decimal(quotas.MAX_MILLI) / 1000
_SEEN = re.compile(r"([0-9a-f-]{36}) ([1-9]\d{0,8}) (\d{1,9}) ([1-9]\d{0,8})", re.ASCII)


class AllotmentForm(StrictForm):
    """Asks that a project's nominal quota become `amount`."""

    pointers = {"/nominal_milli": "amount"}

    amount = forms.DecimalField(
        label="New nominal quota", min_value=Decimal(0), max_value=_MOST, decimal_places=3,
        help_text="What it should become in all, not what to add: GPUs, slices or cores.",
    )  # fmt: skip
    from_at = moment("From", "Empty: as soon as it is granted.", required=False)
    until_at = moment(
        "Until", "What was added goes back by itself then. Empty: for good.", required=False
    )
    reason = forms.CharField(
        max_length=requests.MAX_TEXT, widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What for, and what happens without it. The approver reads this.",
    )  # fmt: skip

    @property
    def allotment(self) -> Allotment:
        return self.of(self.cleaned_data["amount"])

    def of(self, amount: Decimal) -> Allotment:
        """So much, for the time that is said."""
        return Allotment(
            nominal_milli=int(amount * 1000),
            from_at=self.cleaned_data["from_at"],
            until_at=self.cleaned_data["until_at"],
        )


_MORE = ("_2", "_3", "_4", "_5")
"""How the names of the fields of the further lines of a new request end."""
_LINE = re.compile(r"/lines/(\d)/(flavor|nominal_milli)")


class RequestForm(AllotmentForm):
    """A new one, or several at once, which have all but flavor and amount in common."""

    project = forms.ChoiceField()
    flavor = forms.ChoiceField()
    field_order = ("project", "flavor")

    def __init__(
        self,
        data: Posted = None,
        files: Posted = None,
        *,
        projects: Sequence[Project],
        flavors: Iterable[Flavor],
        places: Mapping[UUID, Sequence[str]],
        initial: dict[str, object] | None = None,
    ) -> None:
        """`places` are the clusters that have a flavor."""
        super().__init__(data, files, initial=initial)
        self.choose("project", [(str(p.id), p.full_name) for p in projects])
        offered = [(f.name, _with_places(f.name, places.get(f.id, ()))) for f in flavors]
        self.choose("flavor", [("", "Choose one"), *offered])
        for n in _MORE:
            self.fields[f"flavor{n}"] = forms.ChoiceField(
                label=f"Flavor {n[1:]}", required=False, choices=[("", "None"), *offered]
            )
            self.fields[f"amount{n}"] = forms.DecimalField(
                label=f"New nominal quota {n[1:]}", required=False,
                min_value=Decimal(0), max_value=_MOST, decimal_places=3,
            )  # fmt: skip

    @property
    def single(self) -> list[forms.BoundField]:
        """The fields of all, and of the first line."""
        names = ("project", "flavor", "amount", "from_at", "until_at", "reason")
        return [self[name] for name in names]

    @property
    def more(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        """Those of the further lines."""
        return [(self[f"flavor{n}"], self[f"amount{n}"]) for n in _MORE]

    @property
    def says_more(self) -> bool:
        return any(field.value() for pair in self.more for field in pair)

    @property
    def asked(self) -> list[tuple[str, Allotment]]:
        """Of each line that is filled in, its flavor and what is asked of it."""
        cleaned = self.cleaned_data
        return [(cleaned[f"flavor{n}"], self.of(cleaned[f"amount{n}"])) for n in self._filled()]

    def _filled(self) -> list[str]:
        """How the names of their fields end."""
        return [n for n in ("", *_MORE) if self.cleaned_data.get(f"flavor{n}")]

    def field_of(self, pointer: str) -> str | None:
        line = _LINE.fullmatch(pointer)
        if line is None:
            return super().field_of(pointer)
        name = "flavor" if line[2] == "flavor" else "amount"
        return f"{name}{self._filled()[int(line[1])]}"

    def clean(self) -> dict[str, Any]:  # Any: cleaned values
        cleaned = super().clean()
        for n in _MORE:
            flavor, amount = cleaned.get(f"flavor{n}"), cleaned.get(f"amount{n}")
            if flavor and amount is None and not self.has_error(f"amount{n}"):
                self.add_error(f"amount{n}", f"Say how much of {flavor}.")
            if amount is not None and not flavor and not self.has_error(f"flavor{n}"):
                self.add_error(f"flavor{n}", "Say of which flavor, or leave both empty.")
        return cleaned


def _with_places(flavor: str, places: Sequence[str]) -> str:
    return f"{flavor} ({', '.join(places) or 'no cluster has any'})"


class AmendForm(AllotmentForm):
    """Another wish in place of one that waits, at the version that its requester saw."""

    version = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(
        self, data: Posted = None, files: Posted = None, *, request: QuotaRequest
    ) -> None:
        initial = {
            "amount": Decimal(request.nominal_milli) / 1000,
            "from_at": request.from_at,
            "until_at": request.until_at,
            "reason": request.reason,
            "version": request.version,
        }
        super().__init__(data, files, initial=initial)


class AmountForm(StrictForm):
    """What would be granted instead of what was asked."""

    amount = forms.DecimalField(
        required=False, min_value=Decimal(0), max_value=_MOST, decimal_places=3
    )

    @property
    def milli(self) -> int | None:
        amount: Decimal | None = self.cleaned_data["amount"]
        return None if amount is None else int(amount * 1000)


class DecisionForm(StrictForm):
    """Grant, perhaps another amount or for another time, or deny."""

    decision = forms.ChoiceField(choices=[("grant", "Grant"), ("deny", "Deny")])
    version = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    quota_version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    step = forms.IntegerField(min_value=1, required=False, widget=forms.HiddenInput)
    preview = forms.CharField(required=False, max_length=1000, widget=forms.HiddenInput)
    amount = forms.DecimalField(
        required=False, min_value=Decimal(0), max_value=_MOST, decimal_places=3, label="Amount"
    )
    until_at = moment("Until", "Empty: for good.", required=False)
    take_back = forms.BooleanField(
        required=False, label="At its end preempt what is held beyond the quota"
    )
    note = forms.CharField(
        required=False, max_length=requests.MAX_TEXT, label="Note",
        widget=forms.Textarea(attrs={"rows": 2}),
    )  # fmt: skip

    def __init__(
        self,
        data: Posted = None,
        files: Posted = None,
        *,
        asked: QuotaRequest | QuotaRequestLine,
    ) -> None:
        super().__init__(data, files, auto_id=f"%s-{asked.id}")
        self._asked_milli, self._until_at = asked.nominal_milli, asked.until_at
        self.initial = {"version": asked.version}
        if isinstance(asked, QuotaRequestLine):
            self.initial |= {
                "amount": in_units(asked.most_milli),
                "until_at": asked.most_until_at,
                "quota_version": asked.quota_version,
                "step": asked.step,
            }

    @property
    def given(self) -> Given:
        amount: Decimal | None = self.cleaned_data["amount"]
        return Given(
            nominal_milli=self._asked_milli if amount is None else int(amount * 1000),
            until_at=self._until(),
            take_back=self.cleaned_data["take_back"],
        )

    @property
    def previewed(self) -> Previewed | None:
        """Raises Invalid for what is none."""
        text: str = self.cleaned_data["preview"]
        return previews.read(text) if text else None

    @property
    def seen(self) -> Seen:
        return Seen(
            request=self.cleaned_data["version"],
            quota=self.cleaned_data["quota_version"],
            step=self.cleaned_data["step"] or 1,
        )

    def _until(self) -> datetime | None:
        """As it was asked, to the second, where it still says the minute."""
        until: datetime | None = self.cleaned_data["until_at"]
        asked = self._until_at
        same = until and asked and until == asked.replace(second=0, microsecond=0)
        return asked if same else until

    def clean(self) -> dict[str, Any]:  # Any: cleaned values
        cleaned = super().clean()
        denied = cleaned.get("decision") == "deny"
        if denied and not cleaned.get("note") and "note" not in self.errors:
            self.add_error("note", "Say why it is denied.")
        return cleaned


class ChosenField(forms.Field):
    """Requests, each as `QuotaRequestLine.seen`."""

    widget = forms.MultipleHiddenInput
    default_error_messages = {"required": "Choose one or more requests first."}

    def to_python(self, value: Sequence[str] | None) -> tuple[Chosen, ...]:
        try:
            return tuple(_chosen(text) for text in value or ())
        except ValueError as error:
            raise forms.ValidationError("Choose requests of this page.", "invalid") from error


def _chosen(text: str) -> Chosen:
    """Raises ValueError for what is none."""
    said = _SEEN.fullmatch(text)
    if said is None:
        raise ValueError(text)
    seen = Seen(request=int(said[2]), quota=int(said[3]), step=int(said[4]))
    return Chosen(UUID(said[1]), seen)


class AnswersForm(StrictForm):
    """One answer to all requests that are chosen."""

    pointers = {"/requests": "chosen"}

    decision = forms.ChoiceField(choices=[("grant", "Grant"), ("deny", "Deny")])
    chosen = ChosenField()
    note = forms.CharField(required=False, max_length=requests.MAX_TEXT)

    def clean(self) -> dict[str, Any]:  # Any: cleaned values
        cleaned = super().clean()
        if cleaned.get("decision") == "deny" and not cleaned.get("note") and not self.errors:
            self.add_error("note", "Say why they are denied.")
        return cleaned
