"""`manage.py advise_mig`: how MIG devices had better be cut, by what was asked for lately."""

from typing import Any

from django.core.management.base import BaseCommand

from controlplane.kernel import clock
from scheduler.selectors import layouts


class Command(BaseCommand):
    help = (
        "For each pool (a GPU model in a cluster) with devices that are cut into MIG slices once"
        " and for all: how to cut them for what was asked of it in the last 30 days, and the mean"
        " wait that a simulation says it saves."
    )

    def handle(self, **_: Any) -> None:  # Any: Django's options
        found = layouts.advice(at=clock.now())
        if not found:
            self.stdout.write(
                "No slices were asked for of any pool with devices that are cut once and for all."
            )
        for pool in found:
            one = pool.advice
            self.stdout.write(f"{one.model} in {pool.cluster}:")
            for layout, devices in one.layouts:
                cut = ", ".join(f"{count} x {profile}" for profile, count in layout)
                self.stdout.write(f"  {devices} GPU{'s' if devices > 1 else ''}: {cut}")
            waits = f"  Mean wait {one.mean_wait_s} s"
            if one.now_s is None:
                self.stdout.write(f"{waits}; they have no slices now.")
            else:
                self.stdout.write(
                    f"{waits}, {one.now_s} s as they are cut now: {one.saved_s} s saved."
                )
