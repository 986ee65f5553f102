"""What several scopes say together: limits tighten, defaults are the nearest."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tenants.policy import (
    FIELDS,
    PRIORITY_CLASSES,
    Asked,
    InForce,
    Rules,
    Said,
    defaults,
    in_force,
    loosened,
    refusals,
)

ASKED = Asked(
    run_time_limit_s=3600,
    priority_class="normal",
    labels={"team": "a"},
    gpus_milli=8000,
    pods=2,
    images=[("/pod_sets/0/image", "registry.example/train:1")],
    given={},
)
_values = st.sampled_from(["", "a", "b"])
_keys = st.sampled_from(["team", "cost-centre"])
_numbers = st.none() | st.integers(1, 9)
_classes = st.lists(st.sampled_from(PRIORITY_CLASSES), unique=True, max_size=3).map(tuple)
_images = st.sampled_from(["r/*", "r/a:*", "r/a:1", "q/*", "q/b:2"])
RULES = st.builds(
    Rules,
    max_run_time_s=_numbers,
    max_gpus_milli=_numbers,
    max_pods=_numbers,
    priority_classes=_classes,
    images=st.lists(_images, unique=True, max_size=2).map(tuple),
    required_labels=st.dictionaries(
        _keys, st.lists(st.sampled_from(["a", "b"]), unique=True).map(tuple)
    ),
    forbidden_fields=st.lists(st.sampled_from(FIELDS[:3]), unique=True, max_size=2).map(tuple),
    default_run_time_s=_numbers,
    default_priority_class=st.sampled_from(["", *PRIORITY_CLASSES]),
    default_labels=st.dictionaries(_keys, st.sampled_from(["a", "b"])),
)
CHAINS = st.lists(RULES, max_size=4).map(
    lambda rules: tuple(Said(f"place {nth}", each) for nth, each in enumerate(rules))
)
ASKS = st.builds(
    Asked,
    run_time_limit_s=_numbers,
    priority_class=st.sampled_from(PRIORITY_CLASSES),
    labels=st.dictionaries(_keys, _values),
    gpus_milli=st.integers(0, 9),
    pods=st.integers(1, 9),
    images=st.lists(st.sampled_from(["r/a:1", "r/a:2", "q/b:2"]), max_size=2).map(
        lambda images: [("/pod_sets/0/image", image) for image in images]
    ),
    given=st.dictionaries(st.sampled_from(FIELDS[:3]), st.just("/x"), max_size=2),
)


def chain(**by: Rules) -> tuple[Said, ...]:
    return tuple(Said(name, rules) for name, rules in by.items())


def why(asked: Asked, *, fleet: Rules) -> list[tuple[str, str, str]]:
    found = refusals(chain(Acme=fleet), asked)
    return [(each.rule, each.pointer, each.message) for each in found]


@given(CHAINS, RULES, ASKS)
def test_who_says_more_further_down_permits_nothing_more(
    above: tuple[Said, ...], own: Rules, asked: Asked
) -> None:
    refused = refusals(above, asked)
    also = refusals((*above, Said("own", own)), asked)
    assert {(each.rule, each.pointer) for each in refused} <= {
        (each.rule, each.pointer) for each in also
    }


@given(CHAINS, RULES, ASKS)
def test_what_is_not_looser_holds_as_it_was_said(
    above: tuple[Said, ...], own: Rules, asked: Asked
) -> None:
    """Above it nothing is refused of what it says itself that it would permit."""
    if loosened(above, own):
        return
    mine = {each.rule for each in refusals([Said("own", own)], asked)}
    said = {
        name
        for name in ("max_run_time_s", "max_gpus_milli", "max_pods", "priority_classes", "images")
        if getattr(own, name)
    }
    both = {each.rule for each in refusals((*above, Said("own", own)), asked)}
    assert both & said == mine & said


@given(CHAINS)
def test_the_defaults_are_within_the_limits_wherever_anything_is(above: tuple[Said, ...]) -> None:
    told = defaults(above)
    asked = replace(
        ASKED,
        run_time_limit_s=told.run_time_limit_s,
        priority_class=told.priority_class,
    )
    refused = {each.rule for each in refusals(above, asked)}
    assert "max_run_time_s" not in refused
    lists = [set(each.rules.priority_classes) for each in above if each.rules.priority_classes]
    if not lists or set.intersection(*lists):
        assert "priority_classes" not in refused


@given(CHAINS)
def test_what_is_in_force_tells_the_defaults_as_they_are(above: tuple[Said, ...]) -> None:
    told, rules = defaults(above), {each.rule: each.value for each in in_force(above)}
    assert rules.get("default_run_time_s") == told.run_time_limit_s
    assert rules.get("default_priority_class", "normal") == told.priority_class


def test_the_tightest_number_holds_and_it_is_told_whose_that_is() -> None:
    both = chain(fleet=Rules(max_gpus_milli=64_000), Acme=Rules(max_gpus_milli=4500))
    assert [(each.rule, each.value, each.by) for each in in_force(both)] == [
        ("max_gpus_milli", 4500, "Acme")
    ]
    [refused] = refusals(both, ASKED)
    assert refused.message == "8 GPUs are more than the 4.5 that Acme permits one workload."


def test_each_limit_says_what_was_asked_and_what_would_be_right() -> None:
    assert why(ASKED, fleet=Rules(max_run_time_s=60)) == [
        ("max_run_time_s", "/run_time_limit_s", "1 h is more than the 1 min that Acme permits.")
    ]
    assert why(ASKED, fleet=Rules(max_pods=1)) == [
        ("max_pods", "/pod_sets", "2 pods are more than the 1 that Acme permits.")
    ]
    assert why(ASKED, fleet=Rules(priority_classes=("low",))) == [
        (
            "priority_classes",
            "/priority_class",
            "normal is none of those that Acme permits: low.",
        )
    ]
    assert why(ASKED, fleet=Rules(images=("registry.example/base/*", "python:3"))) == [
        (
            "images",
            "/pod_sets/0/image",
            "registry.example/train:1 is no image that Acme permits: registry.example/base/*,"
            " python:3.",
        )
    ]
    assert why(replace(ASKED, given={"env": "/pod_sets/0/env"}), fleet=Rules(
        forbidden_fields=("args", "env")
    )) == [
        (
            "forbidden_fields",
            "/pod_sets/0/env",
            "env is left to Berth: Acme does not permit to say it.",
        )
    ]  # fmt: skip


def test_a_label_has_to_be_there_and_to_have_a_value_that_is_permitted() -> None:
    wanted = Rules(required_labels={"team": ("b", "c"), "cost-centre": ()})
    assert [message for *_, message in why(ASKED, fleet=wanted)] == [
        "a is no team that Acme permits: b, c.",
        "Acme wants a label cost-centre.",
    ]
    told = replace(ASKED, labels={"team": "c", "cost-centre": ""})
    assert [message for *_, message in why(told, fleet=wanted)] == [
        "Acme wants a label cost-centre."
    ]
    assert not why(replace(told, labels={"team": "c", "cost-centre": "7"}), fleet=wanted)


def test_the_nearest_default_holds_within_the_limits() -> None:
    said = chain(
        fleet=Rules(max_run_time_s=7200, priority_classes=("low", "normal")),
        Acme=Rules(default_run_time_s=3600, default_labels={"team": "a", "site": "x"}),
        vision=Rules(
            default_run_time_s=9000, default_priority_class="urgent", default_labels={"team": "b"}
        ),
    )
    told = defaults(said)
    assert (told.run_time_limit_s, told.priority_class) == (7200, "normal")
    assert told.labels == {"team": "b", "site": "x"}
    assert in_force(said)[2:] == (
        InForce("default_run_time_s", 7200, "fleet"),
        InForce("default_priority_class", "normal", "fleet"),
        InForce("default_labels", {"team": "b"}, "vision"),
        InForce("default_labels", {"site": "x"}, "Acme"),
    )


def test_a_default_label_that_somebody_does_not_permit_is_none() -> None:
    said = chain(
        fleet=Rules(required_labels={"team": ("a",)}, default_labels={"team": "a"}),
        vision=Rules(default_labels={"team": "b", "site": "x"}),
    )
    assert defaults(said).labels == {"team": "a", "site": "x"}


def test_an_image_of_a_registry_on_a_port_is_no_tag() -> None:
    for image, found in (
        ("python:3.13", 0),
        ("python:5000/evil/miner", 1),
        ("registry.example/train@sha256:ab", 0),
        ("registry.example/train@x/evil", 1),
    ):
        asked = replace(ASKED, images=[("/pod_sets/0/image", image)])
        rules = Rules(images=("python:*", "registry.example/train@*"))
        assert len(why(asked, fleet=rules)) == found, image


def test_without_a_default_the_limit_of_the_run_time_is_it() -> None:
    assert defaults(chain(fleet=Rules(max_run_time_s=60))).run_time_limit_s == 60
    assert defaults(()).run_time_limit_s is None


def test_what_would_permit_more_than_above_is_named() -> None:
    above = chain(
        Acme=Rules(
            max_run_time_s=60,
            priority_classes=("low", "normal"),
            images=("registry.example/*",),
            required_labels={"team": ("a", "b")},
        )
    )
    looser = Rules(
        max_run_time_s=61,
        default_run_time_s=62,
        priority_classes=("low", "high"),
        default_priority_class="urgent",
        images=("registry.example/base/*", "docker.io/*"),
        required_labels={"team": ("a", "c")},
        default_labels={"team": "d"},
    )
    assert [(each.pointer, each.message) for each in loosened(above, looser)] == [
        ("/max_run_time_s", "61 s is more than the 1 min that Acme permits."),
        ("/default_run_time_s", "62 s is more than the 1 min that Acme permits."),
        ("/priority_classes", "high is none of those that Acme permits: low, normal."),
        ("/default_priority_class", "urgent is none of those that Acme permits: low, normal."),
        ("/images", "docker.io/* is wider than what Acme permits: registry.example/*."),
        ("/required_labels", "c is no team that Acme permits: a, b."),
        ("/default_labels", "d is no team that Acme permits: a, b."),
    ]
    tighter = replace(
        looser,
        max_run_time_s=60,
        default_run_time_s=1,
        priority_classes=("low",),
        default_priority_class="",
        images=("registry.example/base/*",),
        required_labels={"team": ("b",)},
        default_labels={},
    )
    assert not loosened(above, tighter)
