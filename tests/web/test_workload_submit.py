"""/workloads/new: the form, its estimate, and what it stores."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from scheduler.core.failures import RETRIES
from scheduler.core.lifecycle import State
from scheduler.models import Dependency, PodSet, Workload, WorkloadArray
from scheduler.web.forms import SubmitForm
from tenants.models import Project
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop

URL = reverse("workload-submit")
NOBODY = "00000000-0000-7000-8000-000000000000"


def form(cast: Cast, **changes: Any) -> dict[str, Any]:  # Any: form values
    """What a browser sends when only name and image were typed, but for `changes`."""
    return {
        "project": str(cast.detection.id), "name": "finetune", "flavor": "h100-80gb",
        "second": "", "third": "", "count": "1", "min_count": "", "gpus": "1",
        "share_milli": "500", "cpu": "4", "memory_gib": "16", "image": "example.org/train:1",
        "command": "", "env": "", "limit": "", "limit_unit": "hours",
        "priority_class": "normal", "mode": "preemptible",
    } | changes  # fmt: skip


def test_a_plain_post_stores_it_and_shows_its_page(browse: Browse, cast: Cast, shop: Shop) -> None:
    sent = form(
        cast, count="4", gpus="2", command='python train.py --name "two words"',
        env="SEED=7\n\nPATH_TO=a=b", limit="1.5", limit_unit="hours", priority_class="high",
        mode="semi-preemptible", clusters=["north"], min_count="2", together="rack", notice_s="90",
        grace_s="60", cluster_loss_minutes="15",
    )  # fmt: skip
    answer = browse(cast.ben).post(URL, sent)
    made = Workload.objects.get(name="finetune")
    assert answer.status_code == 303
    assert answer.headers["Location"] == reverse("workload-detail", args=[made.id])
    assert (made.project, made.submitted_by) == (cast.detection, cast.ben)
    assert (made.priority_class, made.preemptible, made.run_time_limit_s) == ("high", False, 5400)
    assert (made.notice_s, made.grace_s, made.cluster_loss_requeue_s) == (90, 60, 900)
    assert [cluster.name for cluster in made.clusters.all()] == ["north"]
    assert (made.topology_level, made.topology_required) == ("rack", False)
    pod_set = PodSet.objects.get(workload=made)
    assert (pod_set.count, pod_set.min_count, pod_set.gpu_count) == (4, 2, 2)
    assert (pod_set.cpu_milli, pod_set.memory_mib) == (4000, 16_384)
    assert pod_set.command == ["python", "train.py", "--name", "two words"]
    assert pod_set.env == {"SEED": "7", "PATH_TO": "a=b"}
    assert AuditEvent.objects.filter(action="workload.submit", target_id=made.id).exists()


def test_the_levels_that_there_are_are_offered_and_too_little_room_is_told_beside_them(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    page = browse(cast.ben).get(URL).content.decode()
    for level in ("zone", "block", "rack", "nvlink", "node"):
        assert f'<option value="{level}">{level}</option>' in page
    answer = browse(cast.ben).post(URL, form(cast, together="rack", together_only="on"))
    assert answer.status_code == 422
    told = answer.context["form"].errors["together"]
    assert told == ["All its pods have to be in one rack, and of no node is known in which it is."]


def test_groups_of_pods_are_asked_for_in_one_domain_each(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    sent = form(cast, count="4", group_size="2", grouped="nvlink")
    answer = browse(cast.ben).post(URL, sent | {"grouped_only": "on"})
    [told] = answer.context["form"].errors["grouped"]
    assert told.startswith("The pods of main have to be in one nvlink, and of no node is known")
    assert browse(cast.ben).post(URL, sent).status_code == 303
    made = PodSet.objects.get(workload__name="finetune")
    assert (made.topology_level, made.topology_required) == ("nvlink", False)
    assert made.topology_group_size == 2


def test_what_is_tried_again_is_chosen_and_starts_as_by_default(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    client = browse(cast.ben)
    shown = client.get(URL).context["form"]
    assert shown["retry_on"].value() == [each.value for each in RETRIES.on]
    assert shown["retry_limit"].value() == RETRIES.limit
    sent = form(cast, retry_on=["exit-code", "node-lost"], retry_limit="0", retry_codes="75, 143")
    assert client.post(URL, sent).status_code == 303
    made = Workload.objects.get(name="finetune")
    assert (made.retry_on, made.retry_limit) == (["exit-code", "node-lost"], 0)
    assert made.retry_exit_codes == [75, 143]


def test_other_work_is_waited_for_by_its_address_or_id(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    client = browse(cast.ben)
    array = factories.array(cast.detection, cast.ben, [shop.h100], 2)
    alone = factories.workload(cast.detection, cast.ben, [shop.h100])
    page = client.get(URL, {"after": f"array:{array.id}"}).content.decode()
    assert f"array:{array.id}</textarea>" in page
    sent = form(
        cast, after_kind="after-end",
        after=f"https://berth.example.org/arrays/{array.id}\r\n\r\n{shop.waiting.id}"
        f"\r\n/workloads/{alone.id}",
    )  # fmt: skip
    assert client.post(URL, sent).status_code == 303
    made = Workload.objects.get(name="finetune")
    found = made.dependencies.values_list("on_workload_id", "on_array_id", "kind")
    assert set(found) == {
        (shop.waiting.id, None, "after-end"),
        (alone.id, None, "after-end"),
        (None, array.id, "after-end"),
    }


def test_elements_wait_by_index_and_to_be_held(browse: Browse, cast: Cast, shop: Shop) -> None:
    array = factories.array(cast.detection, cast.ben, [shop.h100], 3)
    sent = form(cast, after=f"array:{array.id}", after_by_index="on", after_hold="on")
    client = browse(cast.ben)
    for size, told in (("", "this is one workload"), ("4", "has 3 elements and this one 4")):
        answer = client.post(URL, sent | {"array_size": size})
        errors = answer.context["form"].errors
        assert told in " ".join(errors.get("after_by_index", []) + errors.get("after", []))
    assert client.post(URL, sent | {"array_size": "3"}).status_code == 303
    made = WorkloadArray.objects.exclude(id=array.id).get()
    waits = Dependency.objects.filter(workload__array=made, on_workload__array=array)
    assert list(waits.values_list("on_unmet", flat=True)) == ["hold"] * 3


def test_what_can_never_be_waited_for_is_told_beside_how(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    ended = factories.workload(cast.detection, cast.ben, [shop.h100], state=State.FAILED)
    answer = browse(cast.ben).post(URL, form(cast, after=str(ended.id)))
    assert answer.status_code == 422
    [told] = answer.context["form"].errors["after_kind"]
    assert "is FAILED already, so after-success never comes true" in told


def test_htmx_is_told_where_to_go(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).post(URL, form(cast), headers=HTMX)
    made = Workload.objects.get(name="finetune")
    assert answer.headers["HX-Redirect"] == reverse("workload-detail", args=[made.id])


def test_any_gpu_that_is_large_enough_is_accepted_behind_the_named(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    Flavor.objects.filter(id=shop.h100.id).update(memory_mib=81_559)
    factories.flavor("h200", model="NVIDIA-H200", memory_mib=143_771)
    answer = browse(cast.ben).post(URL, form(cast, least_gb="80", vendors=["nvidia"]))
    assert answer.status_code == 303
    assert not Workload.objects.get(name="finetune").move_to_better
    pod_set = PodSet.objects.get(workload__name="finetune")
    assert (pod_set.least_memory_mib, pod_set.vendors) == (76_293, ["nvidia"])
    names = pod_set.accepted.order_by("position").values_list("flavor__name", flat=True)
    assert list(names) == ["h100-80gb", "h200"]
    page = browse(cast.ben).get(answer.headers["Location"]).content.decode()
    assert "h100-80gb, then h200" in page
    assert "any whole GPU of nvidia with 76293 MiB or more" in page


def test_it_may_ask_to_be_moved_to_a_flavor_that_it_prefers(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    answer = browse(cast.ben).post(URL, form(cast, move_to_better="on"))
    assert Workload.objects.get(name="finetune").move_to_better
    page = browse(cast.ben).get(answer.headers["Location"]).content.decode()
    assert "moves to a flavor that it prefers when one is free" in page
    firm = form(cast, name="firm", mode="non-preemptible", move_to_better="on")
    refused = browse(cast.ben).post(URL, firm)
    told = refused.context["form"].errors["move_to_better"]
    assert (refused.status_code, told) == (422, ["What may not be preempted is not moved."])


def test_a_maker_without_a_size_is_asked_for_one(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).post(URL, form(cast, vendors=["amd"]))
    assert answer.status_code == 422
    assert answer.context["form"].errors["vendors"] == ["Say with how much memory; 0 is any."]


def test_flavors_are_accepted_in_the_order_given(browse: Browse, cast: Cast, shop: Shop) -> None:
    factories.device_slice(factories.device(shop.node, 9, mode="mig-static"), "1g.10gb", 0, 1)
    factories.quota(cast.detection, shop.slice, 4000)
    browse(cast.ben).post(URL, form(cast, flavor=shop.slice.name, second="h100-80gb"))
    pod_set = PodSet.objects.get(workload__name="finetune")
    names = pod_set.accepted.order_by("position").values_list("flavor__name", flat=True)
    assert list(names) == [shop.slice.name, "h100-80gb"]


def test_named_flavors_may_be_as_welcome_as_each_other(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    asked = form(cast, flavor=shop.slice.name, second="h100-80gb", any_order="on")
    answer = browse(cast.ben).post(URL, asked)
    assert PodSet.objects.get(workload__name="finetune").any_order
    page = browse(cast.ben).get(answer.headers["Location"]).content.decode()
    assert "in any order" in page
    refused = browse(cast.ben).post(URL, form(cast, name="wishes", any_order="on", least_gb="0"))
    assert refused.status_code == 422
    assert "without a wish" in refused.context["form"].errors["any_order"][0]


def test_cpu_work_needs_no_gpu_fields(browse: Browse, cast: Cast, shop: Shop) -> None:
    sent = form(cast, flavor="cpu", cpu="8", gpus="", share_milli="-3")
    assert browse(cast.ben).post(URL, sent).status_code == 303
    assert PodSet.objects.get(workload__name="finetune").gpu_count == 0


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"name": ""}, "name", "required"),
    ({"name": "ab\u202ecd"}, "name", "bidirectional"),
    ({"name": "ab\x00cd"}, "name", "Null characters"),
    ({"flavor": "h900"}, "flavor", "not one of the available"),
    ({"flavor": ""}, "flavor", "Choose a flavor"),
    ({"count": "-1"}, "count", "greater than or equal to 1"),
    ({"count": "99999999999"}, "count", "less than or equal to"),
    ({"count": "two"}, "count", "whole number"),
    ({"count": "2", "min_count": "3", "mode": "elastic"}, "min_count", "more than count"),
    ({"count": "2", "min_count": "2", "mode": "elastic"}, "min_count", "fewer than all 2"),
    ({"count": "2", "mode": "semi-preemptible"}, "min_count", "fewer than all 2"),
    ({"mode": "firm"}, "mode", "not one of the available"),
    ({"mode": ""}, "mode", "required"),
    ({"gpus": ""}, "gpus", "required"),
    ({"cpu": "1e400"}, "cpu", ""),
    ({"cpu": "NaN"}, "cpu", ""),
    ({"image": "not an image!"}, "image", "image reference"),
    ({"command": 'echo "open'}, "command", "quote"),
    ({"env": "no equals"}, "env", "NAME=value"),
    ({"env": "NVIDIA_VISIBLE_DEVICES=all"}, "env", "refused"),
    ({"env": "A=1\nA=2"}, "env", "again"),
    ({"limit": "-4"}, "limit", "greater than"),
    ({"limit": "400", "limit_unit": "days"}, "limit", "not between"),
    ({"priority_class": "divine"}, "priority_class", "not one of the available"),
    ({"clusters": ["mars"]}, "clusters", "not one of the available"),
    ({"together": "row"}, "together", "not one of the available"),
    ({"group_size": "2"}, "grouped", "what each group"),
    ({"grouped": "rack"}, "group_size", "how many pods"),
    ({"group_size": "3", "grouped": "rack", "count": "4"}, "group_size", "do not divide"),
    ({"second": "cpu"}, "second", "does not go with"),
    ({"second": "h100-80gb"}, "flavor", "once"),
    ({"gpus": "13"}, "gpus", ""),
    ({"flavor": "h100-1g.10gb"}, "flavor", ""),
    ({"retry_limit": "101"}, "retry_limit", "less than or equal to 100"),
    ({"retry_on": ["bad-luck"]}, "retry_on", "not one of the available"),
    ({"retry_codes": "75, x"}, "retry_codes", "'x' is not an exit code"),
    ({"retry_codes": "75 256"}, "retry_codes", "not between 1 and 255"),
    ({"retry_codes": "75 75"}, "retry_codes", "once"),
    ({"after": "train-7"}, "after", "Line 1 is neither an id"),
    ({"after": f"\narray:{NOBODY}"}, "after", f"There is no array {NOBODY} that you see."),
    ({"after": f"{NOBODY}\n{NOBODY}"}, "after", "once"),
    ({"after_kind": "someday"}, "after_kind", "not one of the available"),
]


@pytest.mark.parametrize(("changes", "field", "words"), BAD, ids=lambda part: str(part)[:40])
def test_bad_input_is_told_beside_its_field_and_nothing_is_stored(
    browse: Browse, cast: Cast, shop: Shop, changes: dict[str, Any], field: str, words: str
) -> None:
    before = Workload.objects.count(), AuditEvent.objects.count()
    answer = browse(cast.ben).post(URL, form(cast, **changes))
    assert answer.status_code == 422
    errors = answer.context["form"].errors
    told = " ".join(errors.get(field, []) or errors.get("__all__", []))
    assert told
    assert words in told
    assert (Workload.objects.count(), AuditEvent.objects.count()) == before


def test_a_request_that_could_never_start_is_refused_with_the_numbers(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    answer = browse(cast.ben).post(URL, form(cast, count="2", gpus="8"))
    assert answer.status_code == 422
    assert "16 asked; the project may hold at most 12" in answer.content.decode()


@pytest.mark.parametrize(
    ("cap", "whose"), [("max_pending", "Detection"), ("user_max_pending", "ben in Detection")]
)
def test_what_passes_a_cap_is_refused_with_the_numbers_and_kept_in_the_form(
    browse: Browse, cast: Cast, shop: Shop, cap: str, whose: str
) -> None:
    Project.objects.update(**{cap: 1})
    answer = browse(cast.ben).post(URL, form(cast))
    assert answer.status_code == 422
    assert answer.context["form"].non_field_errors() == [
        f"{whose} has 1 pending workloads; with 1 more it would pass the limit of 1."
    ]
    assert Workload.objects.filter(state="PENDING").get() == shop.waiting


def test_what_was_typed_stays_in_the_form(browse: Browse, cast: Cast, shop: Shop) -> None:
    sent = form(cast, name="", command="python <b>train</b>", env="A=1")
    page = browse(cast.ben).post(URL, sent).content.decode()
    assert "python &lt;b&gt;train&lt;/b&gt;" in page
    assert "A=1" in page


def test_htmx_gets_the_form_back_with_422(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).post(URL, form(cast, name=""), headers=HTMX)
    assert answer.status_code == 422
    assert answer.content.lstrip().startswith(b'<form class="submit" id="submit"')


def test_a_foreign_project_is_not_even_a_choice(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert browse(cast.cleo).post(URL, form(cast)).status_code == 404
    assert not Workload.objects.filter(name="finetune").exists()
    assert "Detection" not in browse(cast.cleo).get(URL).content.decode()


@pytest.mark.parametrize("name", ["vik", "pia", "oz"])
def test_who_may_not_submit_gets_no_form(
    browse: Browse, cast: Cast, shop: Shop, name: str
) -> None:
    client = browse(getattr(cast, name))
    assert "No project to submit to" in client.get(URL).content.decode()
    assert client.post(URL, form(cast)).status_code == 422
    assert not Workload.objects.filter(name="finetune").exists()


def test_a_post_without_the_token_of_the_form_is_refused(cast: Cast, shop: Shop) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.ben)
    answer = client.post(URL, form(cast))
    assert answer.status_code == 403
    assert "load the page again" in answer.content.decode()
    assert not Workload.objects.filter(name="finetune").exists()


@pytest.mark.parametrize(
    ("pointer", "field"),
    [
        ("/0/pod_sets/0/flavors/1", "second"),
        ("/pod_sets/0/flavors", "flavor"),
        ("/pod_sets/0/command/3", "command"),
        ("/0/notice_s", "notice_s"),
        ("/grace_s", "grace_s"),
        ("/retries/limit", "retry_limit"),
        ("/0/retries/exit_codes/1", "retry_codes"),
        ("/0/retries/on", "retry_on"),
        ("/0/depends_on/3/array", "after"),
        ("/0/depends_on/3/kind", "after_kind"),
        ("/0/clusters/2", "clusters"),
        ("/0/topology/level", "together"),
        ("/0/pod_sets/0/topology/group_size", "group_size"),
        ("/0/pod_sets/0/topology/level", "grouped"),
        ("/0/pod_sets", None),
        ("/labels/x", "labels"),
    ],
)
def test_pointers_lead_to_fields(pointer: str, field: str | None) -> None:
    assert SubmitForm.field_of(pointer) == field


def test_an_array_is_stored_and_its_page_shown(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).post(URL, form(cast, array_size="4", most_at_once="2"))
    made = WorkloadArray.objects.get()
    assert answer.headers["Location"] == reverse("array-detail", args=[made.id])
    assert (made.name, made.size, made.most_at_once) == ("finetune", 4, 2)
    assert made.elements.count() == 4


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"array_size": "0"}, "array_size", "greater than or equal to 1"),
        ({"array_size": "10001"}, "array_size", "less than or equal to 10000"),
        ({"array_size": "3", "most_at_once": "4"}, "most_at_once", "the size of the array: 3."),
        ({"most_at_once": "4"}, "most_at_once", "the size of the array: none."),
        ({"array_size": "11", "name": "n" * 97}, "name", "at most 96 characters"),
    ],
)
def test_an_array_that_cannot_be_is_told_beside_its_field(
    browse: Browse, cast: Cast, shop: Shop, changes: dict[str, str], field: str, told: str
) -> None:
    answer = browse(cast.ben).post(URL, form(cast, **changes))
    assert answer.status_code == 422
    assert told in str(answer.context["form"].errors[field])
    assert not WorkloadArray.objects.exists()


def test_what_is_submitted_too_often_is_refused_in_the_form_with_the_same_words(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    Project.objects.update(user_max_submits_a_minute=1)
    client = browse(cast.ben)
    assert client.post(URL, form(cast)).status_code == 303
    answer = client.post(URL, form(cast, name="second"))
    assert answer.status_code == 429
    assert answer.context["form"].non_field_errors() == [
        "ben in Detection has submitted 1 workloads in the last minute; with 1 more it would pass"
        f" the cap of 1. That many may be submitted in {answer.headers['Retry-After']} s."
    ]
    assert not Workload.objects.filter(name="second").exists()
