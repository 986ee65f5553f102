"""Mutants that no test can tell from the code, and why. They count against the score."""

from collections.abc import Mapping

from tests.mutation.mutants import Change

_PATHS = "both are taken from the path of one project, so they are of one length"
_NUMBER = "any number that was not there before will do"
_SLOWER = "what is not remembered is found out again, to the same end"
_ZIP = "pairs = zip(shares, self.past(project=project), strict=True)"
_QUICK_NO = "if option in self._hopeless or not (evicting or self._may_come_free(option)):"

EQUIVALENT: Mapping[Change, str] = {
    Change("preempt", _QUICK_NO, _QUICK_NO.replace(" or not ", " and not ")): _SLOWER,
    Change("preempt", _QUICK_NO, _QUICK_NO.replace("free(option)", "free(None)")): _SLOWER,
    Change("preempt", "self._version = 0", "self._version = 1"): _NUMBER,
    Change("preempt", "self._version += 1", "self._version += 2"): _NUMBER,
    Change("share", _ZIP, _ZIP.replace("strict=True", "strict=None")): _PATHS,
    Change("share", _ZIP, _ZIP.replace("strict=True", "")): _PATHS,
    Change("share", _ZIP, _ZIP.replace("strict=True", "strict=False")): _PATHS,
}
