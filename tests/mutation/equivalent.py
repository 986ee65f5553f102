"""Mutants that no test can tell from the code, and why. They count against the score."""

from collections.abc import Mapping

from tests.mutation.mutants import Change

_AMOUNT = "an amount is never negative, so any negative number equals none"
_PATHS = "both are taken from the path of one project, so they are of one length"
_NUMBER = "any number that was not there before will do"
_SLOWER = "what is not remembered is found out again, to the same end"
_ZIP = "pairs = zip(shares, self.past(project=project), strict=True)"
_QUICK_NO = "if option in self._hopeless or not (evicting or self._may_come_free(option)):"

EQUIVALENT: Mapping[Change, str] = {
    Change(
        "fit",
        "return -1 if place.spans else place.cpu_milli",
        "return -2 if place.spans else place.cpu_milli",
    ): _AMOUNT,
    Change(
        "fit",
        "return sum(span.width for _, span in place.spans) or -1",
        "return sum(span.width for _, span in place.spans) or -2",
    ): _AMOUNT,
    Change(
        "fit",
        "return len(place.spans) * ONE_MILLI or -1",
        "return len(place.spans) * ONE_MILLI or -2",
    ): _AMOUNT,
    Change("preempt", _QUICK_NO, _QUICK_NO.replace(" or not ", " and not ")): _SLOWER,
    Change("preempt", _QUICK_NO, _QUICK_NO.replace("free(option)", "free(None)")): _SLOWER,
    Change(
        "preempt",
        "self._bare.add(project=pending.project, holder=place)",
        "self._bare.add(project=None, holder=place)",
    ): "that draft is asked for room alone, and whose it is takes none",
    Change("preempt", "self._version = 0", "self._version = 1"): _NUMBER,
    Change("preempt", "self._version += 1", "self._version += 2"): _NUMBER,
    Change(
        "preempt",
        "if self._possible.get(option) == self._version:",
        "if self._possible.get(None) == self._version:",
    ): _SLOWER,
    Change(
        "preempt",
        "self._possible[option] = self._version",
        "self._possible[option] = None",
    ): _SLOWER,
    Change("share", _ZIP, _ZIP.replace("strict=True", "strict=None")): _PATHS,
    Change("share", _ZIP, _ZIP.replace("strict=True", "")): _PATHS,
    Change("share", _ZIP, _ZIP.replace("strict=True", "strict=False")): _PATHS,
}
