"""What the cluster itself saw of every pod, told by its watch from the beginning.

The other side of each comparison: nothing in here knows Berth's rows.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from clusters.port import Change, ClusterPort, PodPhase, PodReport

type Place = tuple[str, int, int]
"""(workload, attempt, rank), as the pod's labels say."""

SHUT = {PodPhase.GATED}


@dataclass
class Diary:
    """By place and uid: the last report of each pod; `opened` and `ran` hold uids."""

    pods: dict[Place, dict[str, PodReport]] = field(default_factory=lambda: defaultdict(dict))
    opened: dict[Place, set[str]] = field(default_factory=lambda: defaultdict(set))
    ran: dict[Place, set[str]] = field(default_factory=lambda: defaultdict(set))
    there: set[str] = field(default_factory=set)

    def note(self, report: PodReport, *, gone: bool) -> None:
        place = report.workload, report.attempt, report.rank
        self.pods[place][report.uid] = report
        if report.phase not in SHUT:
            self.opened[place].add(report.uid)
        if report.started_at is not None:
            self.ran[place].add(report.uid)
        (self.there.discard if gone else self.there.add)(report.uid)


def read(port: ClusterPort, *, since: str) -> Diary:
    """Everything from that version to now. The simulator's window has to reach as far back."""
    diary = Diary()
    until = int(port.list_pods().resource_version)
    with port.watch_pods(resource_version=since) as events:
        for event in events:
            if event.report is not None and event.report.workload:
                diary.note(event.report, gone=event.change is Change.DELETE)
            # Bookmarks come when nothing else does.
            if int(event.resource_version) >= until:
                break
    return diary
