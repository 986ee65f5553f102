"""What policies do to submissions: defaults are put in, and what is refused is not there."""

import dataclasses
from dataclasses import replace
from typing import Any

import pytest

from clusters.caught import OwnerRef
from clusters.models import FlavorKind
from controlplane.kernel.errors import Conflict, Invalid, Problem
from scheduler.core.failures import RETRIES
from scheduler.core.snapshot import Isolation, SetTopologyView, TopologyView
from scheduler.models import Workload
from scheduler.services import arrays, explaining, reordering, workloads
from scheduler.services.reordering import Change
from scheduler.services.specs import (
    ArraySpec,
    DependencySpec,
    PodSetSpec,
    WishSpec,
    WorkloadSpec,
)
from tenants.access import actor_for
from tenants.gating import GateSpec
from tenants.models import Role
from tenants.policy import FIELDS, MAX_PODS, MAX_RUN_TIME_S, PRIORITY_CLASSES, Rules
from tenants.services import policies
from tests import factories
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.caught_pods import made, owns, refusal, take_in
from tests.scheduler.stage import LATER, Stage


def say(stage: Stage, *, of: Any = None, version: int = 0, **rules: Any) -> None:
    """Any: a place, and fields of Rules."""
    oz = factories.user("oz")
    factories.member(oz, Role.OPERATOR)
    policies.set_policy(
        actor=actor_for(user=oz), of=of, rules=Rules(**rules), version=version, at=AT
    )


def submit(stage: Stage, *specs: WorkloadSpec) -> list[Workload]:
    return workloads.submit(actor=stage.actor, project=stage.project, specs=specs, at=AT)


def refused(stage: Stage, *specs: WorkloadSpec) -> list[Problem]:
    there = Workload.objects.count()
    with pytest.raises(Invalid) as error:
        submit(stage, *specs)
    assert Workload.objects.count() == there
    return list(error.value.problems)


def told(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(each.pointer, each.code) for each in problems]


def asked(**fields: Any) -> WorkloadSpec:  # Any: fields of the spec
    """Of which nothing is said but `fields`."""
    return replace(spec("h100", name="train"), **{"priority_class": "", **fields})


def test_what_is_not_said_is_as_the_policy_has_it(stage: Stage) -> None:
    say(
        stage,
        default_run_time_s=60,
        default_priority_class="low",
        default_labels={"team": "a", "site": "x"},
    )
    silent, plain = submit(
        stage,
        asked(),
        asked(run_time_limit_s=90, priority_class="high", labels={"team": "b"}),
    )
    assert (silent.run_time_limit_s, silent.priority_class, silent.priority) == (60, "low", -100)
    assert silent.labels == {"team": "a", "site": "x"}
    assert (plain.run_time_limit_s, plain.priority_class) == (90, "high")
    assert plain.labels == {"team": "b", "site": "x"}


def test_without_a_policy_nothing_is_put_in(stage: Stage) -> None:
    [silent] = submit(stage, asked())
    assert (silent.run_time_limit_s, silent.priority_class, silent.labels) == (None, "normal", {})


def test_each_of_a_batch_is_told_all_that_is_refused_and_nothing_is_stored(stage: Stage) -> None:
    say(
        stage,
        of=stage.project,
        max_run_time_s=60,
        max_pods=2,
        images=("registry.example/*",),
        required_labels={"cost-centre": ("47",)},
    )
    fine = asked(
        labels={"cost-centre": "47"},
        pod_sets=(replace(spec("h100").pod_sets[0], image="registry.example/train:1"),),
    )
    forged = replace(
        fine,
        labels={"cost-centre": "48"},
        run_time_limit_s=61,
        pod_sets=(replace(spec("h100").pod_sets[0], count=3, min_count=3, image="train:1"),),
    )
    found = refused(stage, fine, forged)
    assert told(found) == [
        ("/1/run_time_limit_s", "policy-max-run-time-s"),
        ("/1/pod_sets", "policy-max-pods"),
        ("/1/pod_sets/0/image", "policy-images"),
        ("/1/labels", "policy-required-labels"),
    ]
    name = stage.project.name
    assert found[-1].message == f"48 is no cost-centre that {name} permits: 47."
    assert submit(stage, fine)[0].run_time_limit_s == 60


def test_gpus_are_counted_over_all_pods_and_shares_and_slices_as_parts(stage: Stage) -> None:
    shared = factories.flavor("h100.shared", FlavorKind.SHARE, model=stage.flavor.model)
    factories.quota(stage.project, shared, 100_000)
    say(stage, max_gpus_milli=2000)
    [problem] = refused(stage, spec("h100", gpus=1, count=3))
    assert problem.code == "policy-max-gpus-milli"
    assert problem.message.startswith("3 GPUs are more than the 2 that the fleet permits")
    part = replace(spec("h100").pod_sets[0], flavors=(shared.name,), gpu_count=1, gpu_milli=250)
    nine = replace(part, count=9, min_count=9)
    [problem] = refused(stage, asked(pod_sets=(nine,)))
    assert problem.message.startswith("2.25 GPUs are more than the 2")
    assert submit(stage, spec("h100", gpus=1, count=2))


GIVEN: dict[type, dict[str, Any]] = {  # Any: fields of the spec
    WorkloadSpec: {
        "preemptible": False,
        "move_to_better": True,
        "run_time_limit_s": 60,
        "priority_class": "low",
        "clusters": ("north",),
        "labels": {"a": "b"},
        "topology": TopologyView("rack", required=False),
        "depends_on": lambda stage: (DependencySpec("after-end", stage.submit("first").id),),
        "gates": (GateSpec("data", "data", "ada"),),
        "retries": replace(RETRIES, limit=1),
        "grace_s": 31,
        "notice_s": 1,
        "cluster_loss_requeue_s": 700,
    },
    PodSetSpec: {
        "command": ("true",),
        "args": ("x",),
        "env": {"A": "b"},
        "min_count": 1,
        "gpu_milli": 500,
        "gpu_memory_mib": 1024,
        "any_order": True,
        "wish": WishSpec(least_memory_mib=1),
        "least_isolation": Isolation.HARDWARE,
        "topology": SetTopologyView("rack", required=False, pod_set="b"),
    },
}
"""Of each field that may be forbidden, wherever it stands, what nobody says by saying nothing."""
FORBIDDEN = [
    (part, each.name)
    for part in (WorkloadSpec, PodSetSpec)
    for each in dataclasses.fields(part)
    if each.name in FIELDS
]


@pytest.mark.parametrize(("part", "field"), FORBIDDEN)
def test_a_forbidden_field_is_refused_where_it_is_said_and_only_there(
    stage: Stage, part: type, field: str
) -> None:
    value = GIVEN[part][field]
    given = {field: value(stage) if callable(value) else value}
    if field == "gpu_milli":  # which pods with shares alone may say
        shared = factories.flavor("h100.shared", FlavorKind.SHARE, model=stage.flavor.model)
        given["flavors"] = (shared.name,)
    say(stage, forbidden_fields=(field,))
    pod_set = replace(spec("h100").pod_sets[0], count=2, min_count=2, command=())
    plain = asked(pod_sets=(pod_set,))
    if part is PodSetSpec:
        said = asked(pod_sets=(pod_set, replace(pod_set, name="b", **given)))
        pointer = f"/0/pod_sets/1/{field}"
    else:
        said, pointer = replace(plain, **given), f"/0/{field}"
    assert told(refused(stage, said)) == [(pointer, "policy-forbidden-fields")]
    assert submit(stage, plain)


def test_each_field_that_may_be_forbidden_is_one_of_a_spec() -> None:
    assert {field for _, field in FORBIDDEN} == set(FIELDS)


def test_arrays_and_dry_runs_are_asked_as_submissions_are(stage: Stage) -> None:
    say(stage, max_pods=1)
    two = spec("h100", count=2)
    for attempt in (
        lambda: arrays.submit(
            actor=stage.actor, project=stage.project, spec=two, array=ArraySpec(2), at=AT
        ),
        lambda: explaining.dry_run(
            actor=stage.actor, project=stage.project, spec=two, array=None, at=AT
        ),
    ):
        with pytest.raises(Invalid, match="2 pods are more than the 1 that the fleet permits"):
            attempt()


def reorder(stage: Stage, work: Workload, priority_class: str) -> None:
    change = Change(priority_class, None, None)
    reordering.reorder(actor=stage.actor, work=work, change=change, at=LATER)


def test_nobody_gives_work_that_waits_a_priority_that_its_policy_does_not_permit(
    stage: Stage,
) -> None:
    work = stage.submit()
    say(stage, priority_classes=("low", "normal"))
    with pytest.raises(Invalid, match="high is none of those that the fleet permits") as error:
        reordering.reorder(
            actor=stage.actor, work=work, change=Change("high", None, None), at=LATER
        )
    assert error.value.problems[0].pointer == "/priority_class"
    reorder(stage, work, "low")
    work.refresh_from_db()
    assert work.priority_class == "low"


def test_who_may_say_no_priority_gives_none_later_either(stage: Stage) -> None:
    work = stage.submit(priority_class="")
    say(stage, forbidden_fields=("priority_class",))
    with pytest.raises(Invalid, match="priority_class is left to Berth") as error:
        reorder(stage, work, "low")
    assert error.value.problems[0].code == "policy-forbidden-fields"


def test_what_was_checked_under_other_rules_is_not_stored(stage: Stage) -> None:
    checked = workloads.check(actor=stage.actor, project=stage.project, specs=[asked()], at=AT)
    elsewhere = factories.tenant("Elsewhere")
    type(stage.project).objects.filter(id=stage.project.id).update(tenant=elsewhere)
    with pytest.raises(Conflict, match="was moved meanwhile, to other rules: submit it again"):
        workloads.store(checked=checked, at=AT)
    assert not Workload.objects.exists()


def test_what_others_made_in_a_cluster_is_refused_and_told_as_submissions_are(
    stage: Stage,
) -> None:
    say(stage, images=("train:*",), required_labels={"cost-centre": ("47",)})
    labels = (("cost-centre", "47"), ("other", "x"))
    owns(stage, all=1)
    made(stage, "a", images=("train:1", "elsewhere.example/logs:1"), labels=labels)
    take_in(stage)
    assert refusal("a") == "elsewhere.example/logs:1 is no image that the fleet permits: train:*."
    forged = OwnerRef("batch/v1", "Job", "forged", "job-2")
    owns(stage, forged, all=1)
    made(stage, "b", owner=forged, labels=(("cost-centre", "48"),))
    take_in(stage)
    assert refusal("b") == "48 is no cost-centre that the fleet permits: 47."
    assert not Workload.objects.exists()


def test_what_others_made_is_not_refused_for_what_berth_says_of_it(stage: Stage) -> None:
    say(
        stage,
        forbidden_fields=("any_order", "clusters", "retries"),
        required_labels={"team": ()},
        default_run_time_s=60,
        default_priority_class="high",
    )
    owns(stage, all=1)
    made(stage, "a", grace_s=90, labels=(("other", "x"), ("team", "a")))
    take_in(stage)
    work = Workload.objects.get()
    assert (work.labels, work.run_time_limit_s, work.priority_class) == ({"team": "a"}, 60, "high")


def test_a_pod_that_comes_later_runs_no_other_images_either(stage: Stage) -> None:
    say(stage, images=("train:*",))
    owns(stage, all=2)
    made(stage, "a", images=("train:1",))
    take_in(stage)
    made(stage, "b", images=("train:1", "miner:1"))
    take_in(stage, at=LATER)
    assert refusal("b") == "miner:1 is no image that the fleet permits: train:*."


def test_the_command_line_and_the_pages_know_the_same_words() -> None:
    """A pure module may not import them from where they are enforced."""
    from scheduler.services import specs

    assert tuple(specs.PRIORITY_CLASSES) == PRIORITY_CLASSES
    assert (specs.MAX_PODS, specs.MAX_RUN_TIME_S) == (MAX_PODS, MAX_RUN_TIME_S)


def test_all_that_may_be_forbidden_is_a_field_of_a_submission() -> None:
    from scheduler.web import submission

    assert set(FIELDS) <= submission.WORKLOAD_FIELDS | submission.POD_SET_FIELDS
    assert not set(FIELDS) & {"name", "pod_sets", "count", "image", "gpu_count", "flavors"}
