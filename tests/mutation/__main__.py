"""`make mutate`: of how many small changes to the heart of the core its tests take notice.

    python -m tests.mutation

Minutes long, so for the night and not for each change. The modules and their tests are named in
pyproject.toml. Writes tests/bench/results/mutation.json; fails below LEAST, and where `equivalent`
excuses what is no survivor. `mutmut show NAME` and `mutmut browse` say more afterwards.
"""

import os
import shutil
import subprocess
import sys

from tests.bench.report import RESULTS, ROOT, Figures
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import change, results, scores

LEAST = 85.0  # percent of each module's mutants, equivalent ones too


def main() -> None:
    shutil.rmtree(ROOT / "mutants", ignore_errors=True)
    figures = Figures()
    children = str(os.cpu_count() or 1)
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", children]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"mutmut did not run:\n{done.stdout[-4000:]}{done.stderr}")
    found = results(root=ROOT)
    survived = {m.name: change(m, root=ROOT) for m in found if not m.is_killed}
    for name, made in survived.items():
        print(f"\n{name}\n  - {made.before}\n  + {made.after}")
        print(f"  {EQUIVALENT.get(made, 'not noticed')}")
    print(f"\n{'module':<10}{'mutants':>10}{'killed':>10}{'equivalent':>12}{'score':>10}")
    low = []
    for module, score in scores(found).items():
        excused = sum(made.module == module and made in EQUIVALENT for made in survived.values())
        figures.add(f"{module}_mutants", score.mutants, "count")
        figures.add(f"{module}_killed", score.killed, "count")
        figures.add(f"{module}_equivalent", excused, "count")
        figures.add(f"{module}_score", score.percent, "%")
        print(
            f"{module:<10}{score.mutants:>10}{score.killed:>10}{excused:>12}{score.percent:>9.1f}%"
        )
        if score.percent < LEAST:
            low.append(module)
    figures.write(RESULTS / "mutation.json")
    gone = EQUIVALENT.keys() - survived.values()
    for made in sorted(gone):
        print(f"no survivor, to be taken out of equivalent.py: {made}")
    if low or gone:
        raise SystemExit(f"below {LEAST} %: {', '.join(low)}" if low else 1)


if __name__ == "__main__":
    main()
