"""The table of scenarios tells all of them, and nothing else."""

from collections import Counter

from tests.core.scenarios.table import README, scenarios, text

PEERS = tuple(
    f"{name}: "
    for name in (
        "Kueue",
        "KAI",
        "Volcano",
        "YuniKorn",
        "Armada",
        "Slurm",
        "Run:ai",
        "HAMi",
        "GPU Operator",
    )
)


def test_the_table_is_what_the_scenarios_say() -> None:
    assert README.read_text() == text()


def test_there_are_at_least_150_and_no_two_say_the_same() -> None:
    names = Counter(case.name for _, case in scenarios())
    assert [name for name, times in names.items() if times > 1] == []
    assert len(names) >= 150


def test_each_peer_is_a_source_and_each_source_is_a_peers() -> None:
    of = Counter(case.source.partition(": ")[0] + ": " for _, case in scenarios())
    assert set(of) == set(PEERS)
