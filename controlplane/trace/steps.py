"""`python -m controlplane.trace.steps PLAN`: a replay's steps, as a process beside Berth's."""

import sys
from pathlib import Path

import django


def main(plan_file: str) -> int:
    django.setup()
    from controlplane.trace.client import Refused
    from controlplane.trace.plan import Plan
    from controlplane.trace.reading import BadTrace
    from controlplane.trace.replay import Replay, Stuck

    try:
        return Replay(Plan.read(Path(plan_file))).run()
    except (BadTrace, Refused, Stuck) as error:
        print(error)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
