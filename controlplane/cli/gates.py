"""Gates as the command line has them."""

import re
from typing import Any

import click

from tenants.gating import KINDS

type Json = Any  # JSON values

_UNITS = {"m": 60, "h": 3600, "d": 86_400}
_WITHIN = re.compile(r"([0-9]{1,6})([mhd])")


class Declared(click.ParamType[dict[str, Json]]):
    """NAME=OWNER, with a kind and a time behind it if wanted; as an item of `gates`."""

    name = "NAME=OWNER[,KIND][,TIME]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Json]:  # Any: as click has it
        first, *more = str(value).split(",")
        name, equals, owner = first.partition("=")
        if not (name and equals and owner):
            self.fail(f"{value!r} is not a gate, as data-ready=dan, or data-ready=dan,data,2d.")
        gate: dict[str, Json] = {"name": name, "kind": KINDS[-1], "owner": owner}
        for word in more:
            within = _WITHIN.fullmatch(word)
            if within is not None:
                gate["within_s"] = int(within[1]) * _UNITS[within[2]]
            elif word in KINDS:
                gate["kind"] = word
            else:
                kinds = ", ".join(KINDS)
                self.fail(f"{word!r} is neither of {kinds}, nor a time, as 30m, 8h or 2d.")
        return gate
