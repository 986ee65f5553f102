"""What part of the requests for MIG slices finds room: the core's rule beside simple ones.

    python -m tests.bench.mig [--seeds 42 43 ..] [--load 1.2] [--json FILE]

20,000 requests come to 100 GPUs of 80 GB, at 1.2 times what they hold in memory slices; gaps and
holding times are exponential; who finds no room is turned away. Every rule sees the same streams,
and starts whatever fits. Weights of the profiles, from 1g.10gb, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb
to 7g.80gb: uniform 1 each; many small 40 30 15 5 5 5; many big 5 10 10 20 25 30; bimodal 30 15 5 5
15 30.

`first_fit`: the first GPU with a legal start, the lowest. `best_fit`: the fullest GPU, the highest
start (the lowest accepts up to 4 % less). `least_fragmentation`: the least increase of the score
of Zambianco et al. (arXiv 2511.18906): widths of the legal spans that are blocked, over profiles
that the free slices could hold. `most_starts`: where most legal starts of all profiles are left.
`berth`: the rule of the plan, from the core; it learns the mix from the arrivals so far.
`reshape`: the same, and slices are moved for who finds no legal start, where `pays` says so.
`pool`: a mark, one pool in which any hole is as good as another. Compared is with the best rule of
each mix: of the three that are published, and of all four.
"""

import argparse
import random
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from statistics import fmean

from scheduler.core.node import mig
from scheduler.core.node.slices import Mix
from scheduler.core.units import Span
from tests.bench.mig_play import (
    EVEN,
    PROFILES,
    SLICES,
    SPANS,
    WIDTHS,
    Fleet,
    Rank,
    Rule,
    expected,
    ours,
    play,
    pooled_pct,
    ranked,
    stream,
)
from tests.bench.report import RESULTS, Figures

MIXES: dict[str, tuple[int, ...]] = {
    "uniform": (1, 1, 1, 1, 1, 1),
    "many_small": (40, 30, 15, 5, 5, 5),
    "many_big": (5, 10, 10, 20, 25, 30),
    "bimodal": (30, 15, 5, 5, 15, 30),
}
SEEDS = range(42, 52)
LOAD = 1.2
REQUESTS = 20_000
FLEET, DECISIONS = 80_000, 200_000


def first_fit(profile: str, taken: int, span: Span) -> tuple[int, ...]:
    return ()


def best_fit(profile: str, taken: int, span: Span) -> tuple[int, ...]:
    return -taken.bit_count(), -span.start


def least_fragmentation(profile: str, taken: int, span: Span) -> tuple[int, ...]:
    return _blocked(taken | mig.mask(span)) - _blocked(taken), span.start


def most_starts(profile: str, taken: int, span: Span) -> tuple[int, ...]:
    return _starts(taken) - _starts(taken | mig.mask(span)), -taken.bit_count(), taken


@cache
def _blocked(taken: int) -> int:
    free = SLICES - taken.bit_count()
    return sum(
        WIDTHS[name]
        for name, spans in SPANS.items()
        if WIDTHS[name] <= free
        for span in spans
        if mig.mask(span) & taken
    )


@cache
def _starts(taken: int) -> int:
    return sum(not mig.mask(span) & taken for spans in SPANS.values() for span in spans)


def _always(ranks: dict[str, list[Rank]], mix: Mix) -> dict[str, list[Rank]]:
    return ranks


SIMPLE = tuple(
    Rule(key.__name__, partial(_always, ranked(key)))
    for key in (first_fit, best_fit, least_fragmentation, most_starts)
)
RULES = (*SIMPLE, Rule("berth", ours), Rule("reshape", ours, reshapes=True))


def decisions_per_s(*, devices: int, count: int) -> float:
    """Starts a second in a full fleet of an even mix, each with one slice that ends before it."""
    fleet, ranks, chance = Fleet(devices), ours(EVEN), random.Random(42)
    jobs: list[int] = []
    for job, profile in enumerate(iter(lambda: chance.choice(PROFILES), None)):
        found = fleet.find(ranks[profile])
        if found is None:
            break
        fleet.put(job, found[0], profile, found[1])
        jobs.append(job)
    wanted = chance.choices(PROFILES, k=count)
    begun = time.process_time()
    for job, profile in enumerate(wanted, start=devices * SLICES):
        at = chance.randrange(len(jobs))
        jobs[at], jobs[-1] = jobs[-1], jobs[at]
        fleet.drop(jobs.pop())
        found = fleet.find(ranks[profile])
        if found is not None:
            fleet.put(job, found[0], profile, found[1])
            jobs.append(job)
    return count / (time.process_time() - begun)


def take(figures: Figures, *, seeds: Sequence[int] = SEEDS, load: float = LOAD) -> None:
    """Add the figures and print the table."""
    rows = {name: _row(weights, seeds, load) for name, weights in MIXES.items()}
    columns = rows["uniform"].keys()
    rows["mean"] = {c: fmean(row[c] for row in rows.values()) for c in columns}
    prefix = "" if load == LOAD else f"at_{100 * load:.0f}_pct_"
    print(f"{f'{100 * load:.0f} % asked for':<34}" + "".join(f"{name:>12}" for name in rows))
    for column in columns:
        print(f"{column:<34}" + "".join(f"{row[column]:12.2f}" for row in rows.values()))
        unit = "points" if "_above_" in column else "1" if "moves" in column else "%"
        for name, row in rows.items():
            figures.add(f"mig_{prefix}{name}_{column}", row[column], unit)
    if load != LOAD:
        return
    rate = decisions_per_s(devices=FLEET, count=DECISIONS)
    figures.add("mig_decisions_per_s", rate, "1/s")
    print(f"{rate:,.0f} decisions/s over {FLEET:,} GPUs", flush=True)


def _row(weights: tuple[int, ...], seeds: Sequence[int], load: float) -> dict[str, float]:
    streams = [stream(weights, seed=seed, load=load, count=REQUESTS) for seed in seeds]
    played = {
        rule.name: [play(rule, requests, load=load) for requests in streams] for rule in RULES
    }
    found = {name: fmean(o.accepted_pct for o in outcomes) for name, outcomes in played.items()}
    mix = expected(dict(zip(PROFILES, weights, strict=True)), load)
    found["pool"] = fmean(pooled_pct(requests, mix) for requests in streams)
    row = {f"{name}_acceptance_pct": value for name, value in found.items()}
    for title, rules in (("published", SIMPLE[:3]), ("all", SIMPLE)):
        best = max(found[rule.name] for rule in rules)
        row[f"berth_above_{title}_points"] = found["berth"] - best
        row[f"reshape_above_{title}_points"] = found["reshape"] - best
    row["moves_per_1000"] = fmean(1000 * o.moves / o.arrived for o in played["reshape"])
    return row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.mig", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--load", type=float, default=LOAD, help="asked over held, in slices")
    parser.add_argument("--json", type=Path, default=RESULTS / "core.json", help="written here")
    options = parser.parse_args()
    figures = Figures()
    take(figures, seeds=options.seeds, load=options.load)
    figures.write(options.json)


if __name__ == "__main__":
    main()
