"""The form of which flavors a project prefers: a choice for each place. The service checks it."""

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

from django import forms

from controlplane.kernel.forms import Posted, StrictForm
from tenants.models import MAX_PREFERRED


class PreferredForm(StrictForm):
    """Places left empty are passed over, so that one is taken out by emptying its place."""

    PLACES: ClassVar = tuple(f"place_{n}" for n in range(1, MAX_PREFERRED + 1))
    _SPARE = 2
    """Empty places that are shown behind those in use."""

    def __init__(
        self,
        data: Posted = None,
        files: Posted = None,
        *,
        names: Iterable[str],
        preferred: Sequence[str] = (),
    ) -> None:
        """`names` may be chosen, `preferred` are."""
        initial = dict(zip(self.PLACES, preferred, strict=False))
        super().__init__(data, files, initial=initial)
        choices = [("", "no other"), *((name, name) for name in names)]
        self._flavor_count = len(choices) - 1
        for place in self.PLACES:
            label = "then" if self.fields else "First"
            self.fields[place] = forms.ChoiceField(label=label, choices=choices, required=False)

    @property
    def preferred(self) -> list[str]:
        return [self.cleaned_data[place] for place in self._filled]

    @property
    def _filled(self) -> list[str]:
        return [place for place in self.PLACES if self.cleaned_data[place]]

    def field_of(self, pointer: str) -> str | None:
        """A service counts the places that are filled."""
        found = re.fullmatch(r"/preferred_flavors/(\d+)", pointer)
        return self._filled[int(found[1])] if found else None

    @property
    def shown(self) -> list[forms.BoundField]:
        """Places in use, or posted, with some to spare, and no more than there are flavors."""
        used = [n for n, place in enumerate(self.PLACES, start=1) if self[place].value()]
        last = max(used, default=0)
        most = max(last, min(last + self._SPARE, self._flavor_count), 1)
        return [self[place] for place in self.PLACES[:most]]
