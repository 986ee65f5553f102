"""`manage.py advise_mig`: how MIG devices had better be cut, by what was asked for lately."""

from typing import Any

from django.core.management.base import BaseCommand

from controlplane.kernel import clock
from scheduler.selectors import layouts


class Command(BaseCommand):
    help = (
        "For each pool (a GPU model in a cluster) with devices in MIG mode: how to cut them for"
        " what was asked of it in the last 30 days, and the mean wait that a simulation says it"
        " saves."
    )

    def handle(self, **_: Any) -> None:  # Any: Django's options
        found = layouts.advice(at=clock.now())
        if not found:
            self.stdout.write("No slices were asked for of any pool with devices in MIG mode.")
        for pool in found:
            one = pool.advice
            self.stdout.write(f"{one.model} in {pool.cluster}:")
            for layout, devices in one.layouts:
                cut = ", ".join(f"{count} x {profile}" for profile, count in layout)
                self.stdout.write(f"  {devices} GPU{'s' if devices > 1 else ''}: {cut}")
            waits = f"  Mean wait {one.mean_wait_s} s"
            if one.now_s is None:
                self.stdout.write(f"{waits}; nothing is cut once and for all now.")
            else:
                self.stdout.write(
                    f"{waits}, {one.now_s} s as they are cut now: {one.saved_s} s saved."
                )
