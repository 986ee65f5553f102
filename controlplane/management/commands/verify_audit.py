"""`manage.py verify_audit`: says whether the audit is what was written."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.audit import chains
from controlplane.audit.chains import Chain, Head, Unsound
from controlplane.kernel import clock


class Command(BaseCommand):
    help = (
        "Read all audit rows and the chains that they are in; exit status 1 and one sentence for"
        " the first that is not as it was written."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--anchor",
            type=Path,
            metavar="FILE",
            help="also compare the chains with the ends that an earlier run stored in this file,"
            " and, if all is sound, store today's; keep it where nobody of the database writes",
        )

    def handle(self, *, anchor: Path | None, **_: Any) -> None:  # Any: Django's options
        known = _read(anchor) if anchor and anchor.exists() else None
        try:
            found = chains.verify(anchor=known)
        except Unsound as error:
            self.stderr.write(error.message)
            sys.exit(1)
        for chain in found:
            self.stdout.write(
                f"Chain {chain.number}: {chain.rows} rows in {chain.head.position} links."
            )
        rows = sum(chain.rows for chain in found)
        self.stdout.write(f"All {rows} rows are as they were written, each in one chain.")
        if known is None:
            self.stdout.write(
                "Compared with no anchor: that rows were cut off at an end can't be seen."
            )
        else:
            self.stdout.write(f"The chains go on from the ends in {anchor}.")
        if anchor:
            _write(anchor, found)


def _read(file: Path) -> Mapping[int, Head]:
    try:
        heads = json.loads(file.read_bytes())["heads"]
        return {int(number): Head(int(at), str(digest)) for number, (at, digest) in heads.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"{file} is no anchor that this command wrote: {error!r}") from error


def _write(file: Path, found: list[Chain]) -> None:
    """As a whole or not at all."""
    heads = {str(each.number): [each.head.position, each.head.digest] for each in found}
    told = {"stored_at": clock.now().isoformat(), "heads": heads}
    beside = file.with_name(f"{file.name}.new")
    try:
        beside.write_text(json.dumps(told, indent=1) + "\n")
        os.replace(beside, file)
    except OSError as error:
        raise CommandError(f"The anchor is not stored: {error}") from error
