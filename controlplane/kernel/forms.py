"""What a page takes from a form: the fields that it names, and no other."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import BadRequest
from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict

from controlplane.kernel.errors import Problem, no_such_field

type Posted = MultiValueDict[str, Any] | None  # Any: texts or files
"""`request.POST` or `request.FILES`, None for a form that nobody posted yet."""
_CSRF = "csrfmiddlewaretoken"
_NAMED = 5
"""Unknown fields that one message repeats."""


class StrictForm(forms.Form):
    """A form that is at fault when something is posted that it has no field for, a file too."""

    beside: frozenset[str] = frozenset()
    """Fields of the same page that the view reads."""
    secret = False
    """True where secrets are posted: one may have slipped into the name of an unknown field, so no
    such name is repeated."""
    pointers: ClassVar[Mapping[str, str]] = {}
    """The fields of what a service calls otherwise, by its pointer."""

    def clean(self) -> dict[str, Any]:  # Any: cleaned values
        known = {*self.fields, *self.beside}
        unknown = [name for name in (*self.data, *self.files) if name not in {*known, _CSRF}]
        if unknown:
            names = ", ".join(ascii(name[:60]) for name in unknown[:_NAMED])
            said = no_such_field(known) if self.secret else f"{names}: {no_such_field(known)}"
            error = forms.ValidationError(said, "unknown-field")
            self.add_error(None, error)
        return super().clean() or self.cleaned_data

    def field_of(self, pointer: str) -> str | None:
        """Which field a service's pointer is about, None for none of this form's."""
        field = self.pointers.get(pointer, pointer.removeprefix("/"))
        return field if field in self.fields else None

    def show(self, problems: Iterable[Problem]) -> None:
        """Put each beside the field that it is about, once of a kind, else above the form."""
        for problem in problems:
            field = self.field_of(problem.pointer)
            if field is None or not self.has_error(field, problem.code):
                self.add_error(field, forms.ValidationError(problem.message, code=problem.code))

    @property
    def fault(self) -> str:
        """All that is wrong, in one line."""
        return " ".join(str(each) for errors in self.errors.values() for each in errors)

    def choose(self, name: str, choices: Sequence[tuple[str, str]]) -> None:
        """Offer these (value, label) in that field."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  # for the type checker
        field.choices = choices


def named_lines(text: str, *, sign: str, like: str = "") -> dict[str, str]:
    """Name → what is behind the sign, one a line; where it says what a line is `like`, all have
    the sign. Raises ValidationError that names the line at fault."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        name, there, value = line.partition(sign)
        if like and not there:
            raise forms.ValidationError(f"Line {number} has no “{sign}”: {like} is wanted.")
        if name.strip() in found:
            raise forms.ValidationError(f"Line {number} sets {name.strip()} again.")
        found[name.strip()] = value
    return found


def moment(label: str, help_text: str, *, required: bool = True) -> forms.DateTimeField:
    """A field for a time of a day, to the minute, in the zone of its reader."""
    widget = forms.DateTimeInput(format="%Y-%m-%dT%H:%M", attrs={"type": "datetime-local"})
    return forms.DateTimeField(label=label, help_text=help_text, widget=widget, required=required)


def no_fields(request: HttpRequest) -> None:
    """Of a POST that is only a button. Raises BadRequest when it has a field, naming it."""
    form = StrictForm(request.POST, request.FILES)
    if not form.is_valid():
        raise BadRequest(" ".join(map(str, form.non_field_errors())))
