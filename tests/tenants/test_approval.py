"""Which steps a request takes: whatever the rules, in one order, and never fewer for more."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tenants.approval import Level, Rule, Step, due, left, steps

TREE = [UUID(int=n) for n in (1, 2, 3)]  # its own tenant first, the root last
ELSEWHERE = UUID(int=9)
_RULES = st.lists(
    st.one_of(
        st.builds(
            Rule,
            st.sampled_from([*TREE, ELSEWHERE, None]),
            st.just(Level.TENANT),
            st.integers(0, 40),
        ),
        st.builds(Rule, st.none(), st.just(Level.FLEET), st.integers(0, 40)),
    ),
    max_size=6,
)
_SIZES = st.integers(0, 50)


def taken_by(size: int, rules: list[Rule]) -> tuple[Step, ...]:
    return steps(size_milli=size, tenants=TREE, rules=rules)


def test_without_rules_one_step_of_the_project() -> None:
    assert taken_by(10**12, []) == (Step(Level.PROJECT),)


def test_each_level_agrees_from_its_size_on() -> None:
    rules = [
        Rule(None, Level.TENANT, 8),
        Rule(None, Level.FLEET, 32),
        Rule(TREE[2], Level.TENANT, 16),
    ]
    project, fleet = Step(Level.PROJECT), Step(Level.FLEET)
    own, root = Step(Level.TENANT, TREE[0]), Step(Level.TENANT, TREE[2])
    assert taken_by(7, rules) == (project,)
    assert taken_by(8, rules) == (project, own)
    assert taken_by(16, rules) == (project, own, root)
    assert taken_by(32, rules) == (project, own, root, fleet)


@given(_SIZES, _RULES)
def test_they_go_up_once_and_stay_in_the_tree(size: int, rules: list[Rule]) -> None:
    found = taken_by(size, rules)
    order = [Step(Level.PROJECT), *(Step(Level.TENANT, t) for t in TREE), Step(Level.FLEET)]
    assert found[0] == order[0]
    assert list(found) == [step for step in order if step in found]


@given(_SIZES, _SIZES, _RULES, _RULES)
def test_more_asked_or_more_rules_take_no_fewer_steps(
    size: int, more: int, rules: list[Rule], others: list[Rule]
) -> None:
    fewer = set(taken_by(size, rules))
    assert fewer <= set(taken_by(size + more, rules))
    assert fewer <= set(taken_by(size, [*others, *rules]))


@given(_SIZES, _RULES)
def test_each_is_due_in_turn_and_then_none_is_left(size: int, rules: list[Rule]) -> None:
    chain, taken = taken_by(size, rules), list[Step]()
    while left(chain, taken):
        assert due(chain, taken) == left(chain, taken)[0]
        taken.append(due(chain, taken))
    assert tuple(taken) == chain
    assert due(chain, taken) == chain[-1]
