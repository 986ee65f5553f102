"""/policy, and that of each tenant and project: what holds, the form, and what is refused."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from controlplane.kernel import clock
from scheduler.models import Workload
from scheduler.services import workloads
from scheduler.services.workloads import Checked
from tenants.access import actor_for
from tenants.models import Role, SubmitPolicy
from tenants.policy import Rules
from tenants.selectors.idle_limits import IdleLimit
from tenants.services import idle_limits, policies, run_times
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop
from tests.web.test_workload_submit import form

FLEET = reverse("policy")
EMPTY = {"version": "0"}
SAVE = {**EMPTY, "save": "yes"}


def of_detection(cast: Cast) -> str:
    return reverse("project-policy", args=[cast.detection.id])


def test_all_that_the_form_says_is_kept_and_shown_again(browse: Browse, cast: Cast) -> None:
    rules = Rules(
        max_run_time_s=5400,
        max_gpus_milli=4500,
        max_pods=8,
        priority_classes=("low", "normal"),
        images=("registry.example/*", "python:3"),
        required_labels={"cost-centre": ("4711", "4712"), "team": ()},
        forbidden_fields=("clusters",),
        default_run_time_s=3600,
        default_priority_class="low",
        default_labels={"team": "vision"},
    )
    said = {
        "max_run_time_s": "90 min",
        "max_gpus": "4.5",
        "max_pods": "8",
        "priority_classes": ["low", "normal"],
        "images": "registry.example/*\n\npython:3\n",
        "required_labels": "cost-centre: 4711, 4712\nteam",
        "forbidden_fields": ["clusters"],
        "default_run_time_s": "1",
        "default_priority_class": "low",
        "default_labels": "team: vision",
    }
    client = browse(cast.ada)
    assert client.post(of_detection(cast), {**SAVE, **said}).status_code == 303
    assert SubmitPolicy.objects.get().rules == rules
    form = client.get(of_detection(cast)).context["form"]
    shown = {field.name: field.value() for field in form}
    sent = {name: value for name, value in shown.items() if value is not None}
    assert client.post(of_detection(cast), {**sent, "save": "yes"}).status_code == 303
    row = SubmitPolicy.objects.get()
    assert (row.rules, row.version) == (rules, 2)


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("max_run_time_s", "soon", "A whole number and s, min, h or d, such as 12 h."),
        ("max_run_time_s", "1.5 h", "A whole number and s, min, h or d, such as 12 h."),
        ("max_run_time_s", "91 d", "is not between 1 and 7,776,000."),
        ("max_gpus", "-1", "greater than or equal to 0"),
        ("max_gpus", "0", "0 is not between 1 and 1,000,000,000."),
        ("max_gpus", "0.0001", "no more than 3 decimal places"),
        ("required_labels", "a: 1\na: 2", "Line 2 sets a again."),
        ("default_labels", "team", "Line 1 has no “:”: label: value is wanted."),
        ("images", "registry.example*", "is no image, and no beginning of images"),
        ("priority_classes", "top", "top is not one of the available choices"),
        ("is_from_above", "on", "There is no such field"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_kept(
    browse: Browse, cast: Cast, field: str, value: str, why: str
) -> None:
    for way in (SAVE, EMPTY):
        answer = browse(cast.ada).post(of_detection(cast), {**way, field: value})
        assert answer.status_code == 422
        form = answer.context["form"]
        assert why in " ".join(form.errors.get(field, form.non_field_errors()))
    assert not SubmitPolicy.objects.exists()


def test_a_trial_tells_and_keeps_nothing(browse: Browse, cast: Cast, shop: Shop) -> None:
    type(shop.waiting).objects.update(submitted_at=clock.now())
    answer = browse(cast.ada).post(
        of_detection(cast), {**EMPTY, "required_labels": "team"}, headers=HTMX
    )
    assert answer.status_code == 200
    told = " ".join(answer.content.decode().split())
    assert "2 of 2 submissions since" in told
    assert "Detection wants a label team." in told
    assert not SubmitPolicy.objects.exists()


def test_whom_somebody_else_was_quicker_than_is_told(browse: Browse, cast: Cast) -> None:
    client = browse(cast.ada)
    assert client.post(of_detection(cast), SAVE).status_code == 303
    answer = client.post(of_detection(cast), {**SAVE, "max_pods": "3"})
    assert answer.status_code == 409
    assert "at version 1 by now, not 0" in answer.content.decode()


def test_who_may_only_look_sees_what_holds_and_whose_word_it_is(
    browse: Browse, cast: Cast
) -> None:
    oz = actor_for(user=cast.oz)
    policies.set_policy(actor=oz, of=None, rules=Rules(max_pods=8), version=0, at=factories.AT)
    answer = browse(cast.ben).get(of_detection(cast))
    assert answer.context["in_force"] == [("Pods of one workload at most", "8", "the fleet")]
    assert answer.context["form"] is None
    assert browse(cast.ben).post(of_detection(cast), SAVE).status_code == 403
    assert browse(cast.cleo).get(of_detection(cast)).status_code == 404
    run_times.set_for_project(actor=oz, project=cast.detection, seconds=0, at=factories.AT)
    limit = IdleLimit(5400, 600)
    idle_limits.set_for_tenant(actor=oz, tenant=cast.vision, limit=limit, at=factories.AT)
    told = [
        ("Pods of one workload at most", "8", "the fleet"),
        ("Idle work is freed after", "90 min", "Vision Lab"),
        ("Work may be evicted after", "any time", "Detection"),
    ]
    assert browse(cast.ben).get(of_detection(cast)).context["in_force"] == told
    above = browse(cast.ada).get(reverse("tenant-policy", args=[cast.vision.id]))
    assert above.context["in_force"] == told[:2]
    assert browse(cast.ben).get(FLEET).context["in_force"] == told[:1]
    asked = {"project": str(cast.detection.id)}
    form = browse(cast.ben).get(reverse("workload-submit"), asked, headers=HTMX)
    assert form.context["policy"] == told
    assert browse(cast.cleo).get(FLEET).status_code == 200


def test_what_was_said_from_above_is_shown_without_a_form(browse: Browse, cast: Cast) -> None:
    owner = factories.user("olive")
    factories.member(owner, Role.OWNER, at=cast.detection)
    ada = actor_for(user=cast.ada)
    policies.set_policy(
        actor=ada, of=cast.detection, rules=Rules(max_pods=8), version=0, at=factories.AT
    )
    answer = browse(owner).get(of_detection(cast))
    assert answer.context["form"] is None
    assert "said by who is above it" in answer.content.decode()
    assert browse(owner).post(of_detection(cast), {**SAVE, "version": "1"}).status_code == 403


@pytest.mark.usefixtures("one_moment", "settled")
def test_the_last_week_is_played_with_it(browse: Browse, cast: Cast, shop: Shop) -> None:
    type(shop.waiting).objects.update(submitted_at=clock.now() - timedelta(hours=2))
    answer = browse(cast.ada).post(
        of_detection(cast), {**EMPTY, "play": "yes", "required_labels": "team"}, headers=HTMX
    )
    assert answer.status_code == 200
    told = " ".join(answer.content.decode().split())
    assert "<html" not in told
    assert "Labels that are wanted: 2" in told
    assert "nothing of it would come" in told
    assert 'name="save"' in told
    assert not SubmitPolicy.objects.exists()


def test_what_can_not_be_is_not_played_either(browse: Browse, cast: Cast) -> None:
    answer = browse(cast.ada).post(
        of_detection(cast), {**EMPTY, "play": "yes", "max_run_time_s": "91 d"}
    )
    assert answer.status_code == 422
    assert "is not between 1 and 7,776,000." in answer.content.decode()
    assert browse(cast.ben).post(of_detection(cast), {**EMPTY, "play": "y"}).status_code == 403


def test_a_submission_that_was_checked_by_other_rules_is_told_to_come_again(
    browse: Browse, cast: Cast, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = workloads.check

    def then_they_change(**asked: Any) -> Checked:
        """Any: as `check` has it."""
        checked = check(**asked)
        oz = actor_for(user=cast.oz)
        policies.set_policy(actor=oz, of=None, rules=Rules(max_pods=1), version=0, at=factories.AT)
        return checked

    monkeypatch.setattr(workloads, "check", then_they_change)
    sent = form(cast)
    before = Workload.objects.count()
    answer = browse(cast.ben).post(reverse("workload-submit"), sent)
    assert answer.status_code == 409
    told = answer.content.decode()
    assert "was changed meanwhile: submit it again, to be checked by that." in told
    assert sent["image"] in told
    assert Workload.objects.count() == before
    monkeypatch.undo()
    assert browse(cast.ben).post(reverse("workload-submit"), sent).status_code == 303
