"""Bad submissions: a clear error that names the field, and nothing stored."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from clusters.models import DeviceMode
from tenants.models import User
from tests import factories
from tests.api.bad_fields import POD_SET, SPEC, Json
from tests.conftest import Cast, Unchanged

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/workloads"


@pytest.fixture(autouse=True)
def fleet(cast: Cast) -> None:
    """north: one node, 8 whole H100s, 96 cores, 1 TiB. south: one static 1g.10gb slice."""
    factories.node(factories.cluster("north"))
    slices = factories.node(factories.cluster("south"), "s1", gpus=0)
    sliced = factories.device(slices, mode=DeviceMode.MIG_STATIC)
    factories.device_slice(sliced, "1g.10gb", 0, 1)
    whole, small, cpu = factories.flavor(), factories.mig_flavor(), factories.cpu_flavor()
    large = factories.mig_flavor("h100-3g.40gb", "3g.40gb")
    factories.quota(cast.detection, whole, 8000, borrowing_limit_milli=0)
    factories.quota(cast.segmentation, whole, 8000)
    for flavor in (small, large):
        factories.quota(cast.detection, flavor, 4000)
    factories.quota(cast.detection, cpu, 64_000)


def refused(answer: Any, *, status: int = 400) -> list[tuple[str, str]]:
    """(pointer, code) of each fault of a problem document."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"].startswith("/api/v1/problems/")
    assert problem["instance"] == answer.wsgi_request.path
    return [(fault["pointer"], fault["code"]) for fault in problem["errors"]]


@pytest.mark.parametrize(("change", "pointer", "code"), SPEC)
def test_it_refuses_a_bad_workload(
    api: Api, cast: Cast, nothing_stored: Unchanged,
    change: dict[str, Json], pointer: str, code: str,
) -> None:  # fmt: skip
    with nothing_stored():
        answer = api(cast.ben).post(
            URL, factories.submission(cast.detection) | change, format="json"
        )
    assert (pointer, code) in refused(answer)


@pytest.mark.parametrize(("change", "pointer", "code"), POD_SET)
def test_it_refuses_a_bad_pod_set(
    api: Api, cast: Cast, nothing_stored: Unchanged,
    change: dict[str, Json], pointer: str, code: str,
) -> None:  # fmt: skip
    body = factories.submission(cast.detection, pod_set=change)
    with nothing_stored():
        answer = api(cast.ben).post(URL, body, format="json")
    assert (f"/pod_sets/0/{pointer}", code) in refused(answer)


@pytest.mark.parametrize("field", ["project", "name", "pod_sets"])
def test_it_names_a_missing_field(
    api: Api, cast: Cast, nothing_stored: Unchanged, field: str
) -> None:
    body = factories.submission(cast.detection)
    del body[field]
    with nothing_stored():
        answer = api(cast.ben).post(URL, body, format="json")
    assert refused(answer) == [(f"/{field}", "required")]


def test_it_names_every_fault_at_once(api: Api, cast: Cast) -> None:
    body = factories.submission(cast.detection, name="", extra=1, pod_set={"count": -1, "x": 1})
    found = refused(api(cast.ben).post(URL, body, format="json"))
    assert {pointer for pointer, _ in found} == {
        "/extra", "/name", "/pod_sets/0/count", "/pod_sets/0/x",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "field", "numbers"),
    [
        ({"gpu_count": 9}, "gpu_count", ["9"]),  # larger than any node
        ({"cpu_milli": 97_000}, "cpu_milli", ["97"]),  # the same, by its CPU
        ({"memory_mib": 2**21}, "memory_mib", ["2048"]),  # and by its memory
        ({"count": 2, "gpu_count": 8}, "count", ["16", "8"]),  # two of them have one node
        ({"count": 9, "min_count": 9, "gpu_count": 1}, "count", ["9", "8"]),
        ({"count": 12, "min_count": 10, "gpu_count": 1}, "min_count", ["10", "8"]),
        ({"count": 2, "cpu_milli": 60_000}, "count", ["60"]),  # one has room
        ({"flavors": ["h100-3g.40gb"]}, "flavors/0", []),  # a profile that no device has
        ({"flavors": ["h100-3g.40gb", "h100-80gb"], "gpu_count": 9}, "gpu_count", ["9"]),
        ({"flavors": ["cpu"], "gpu_count": 0, "count": 20}, "count", ["80", "64"]),  # its quota
        ({"flavors": ["cpu"], "gpu_count": 0, "cpu_milli": 65_000}, "cpu_milli", ["65", "64"]),
        ({"flavors": ["cpu"], "gpu_count": 0, "count": 64}, "count", ["256", "96"]),
    ],
)
def test_it_refuses_what_could_never_start_with_the_numbers(
    api: Api, cast: Cast, nothing_stored: Unchanged,
    change: dict[str, Json], field: str, numbers: list[str],
) -> None:  # fmt: skip
    body = factories.submission(cast.detection, pod_set=change)
    with nothing_stored():
        answer = api(cast.ben).post(URL, body, format="json")
    ((pointer, _),) = refused(answer)
    assert pointer == f"/pod_sets/0/{field}"
    assert all(number in answer.json()["detail"] for number in numbers), answer.json()


def test_of_several_pod_sets_it_names_the_one_at_fault(
    api: Api, cast: Cast, nothing_stored: Unchanged
) -> None:
    body = factories.submission(cast.detection)
    small = body["pod_sets"][0]
    for other, pointer in (
        ({"gpu_count": 9}, "/pod_sets/1/gpu_count"),
        ({"cpu_milli": 97_000}, "/pod_sets/1/cpu_milli"),
        ({"flavors": ["cpu"], "gpu_count": 0, "cpu_milli": 65_000}, "/pod_sets/1/cpu_milli"),
        ({"flavors": ["h100-3g.40gb"]}, "/pod_sets/1/flavors/0"),
    ):
        body["pod_sets"] = [small, small | {"name": "other"} | other]
        with nothing_stored():
            answer = api(cast.ben).post(URL, body, format="json")
        assert [found for found, _ in refused(answer)] == [pointer]


def test_a_quota_of_nothing_is_the_flavors_fault(api: Api, cast: Cast) -> None:
    cast.detection.quotas.all().delete()
    answer = api(cast.ben).post(URL, factories.submission(cast.detection), format="json")
    assert refused(answer) == [("/pod_sets/0/flavors/0", "never-admissible")]


def test_what_may_not_be_preempted_is_told_that_it_does_not_borrow(
    api: Api, cast: Cast, nothing_stored: Unchanged
) -> None:
    quota = cast.detection.quotas.get(flavor__name="h100-80gb")
    quota.nominal_milli, quota.borrowing_limit_milli = 4000, None
    quota.save()
    body = factories.submission(cast.detection, pod_set={"gpu_count": 5})
    with nothing_stored():
        answer = api(cast.ben).post(URL, body | {"preemptible": False}, format="json")
    assert refused(answer) == [("/preemptible", "never-admissible")]
    assert answer.json()["detail"] == (
        "/preemptible: 5 asked; 4 h100-80gb are guaranteed to the project and those above it, and"
        " work that may not be preempted does not borrow."
    )
    assert api(cast.ben).post(URL, body, format="json").status_code == 201


def test_it_tells_the_bounds_of_an_absurd_number(api: Api, cast: Cast) -> None:
    body = factories.submission(cast.detection, pod_set={"count": 10**30})
    answer = api(cast.ben).post(URL, body, format="json")
    assert refused(answer) == [("/pod_sets/0/count", "out-of-range")]
    assert "not between 1 and 4096" in answer.json()["detail"]


def test_it_names_the_character_that_nobody_sees(api: Api, cast: Cast) -> None:
    body = factories.submission(cast.detection, name="tra\u200bin")
    answer = api(cast.ben).post(URL, body, format="json")
    assert "U+200B at position 4" in answer.json()["detail"]


def test_a_batch_has_a_bounded_number_of_pods(
    api: Api, cast: Cast, nothing_stored: Unchanged
) -> None:
    one = factories.submission(cast.detection, pod_set={"count": 4096})
    del one["project"]
    body = {"project": str(cast.detection.id), "workloads": [one] * 5}
    with nothing_stored():
        answer = api(cast.ben).post(f"{URL}/batch", body, format="json")
    assert refused(answer) == [("/workloads", "out-of-range")]
    assert "20480 pods in all workloads; at most 16384" in answer.json()["detail"]


def test_it_refuses_a_profile_that_the_accepted_clusters_lack(
    api: Api, cast: Cast, nothing_stored: Unchanged
) -> None:
    body = factories.submission(cast.detection, pod_set={"flavors": ["h100-1g.10gb"]})
    with nothing_stored():
        answer = api(cast.ben).post(URL, body | {"clusters": ["north"]}, format="json")
    assert [pointer for pointer, _ in refused(answer)] == ["/pod_sets/0/flavors/0"]
    assert api(cast.ben).post(URL, body, format="json").status_code == 201


def test_another_tenants_project_is_as_good_as_missing(
    api: Api, cast: Cast, nothing_stored: Unchanged
) -> None:
    with nothing_stored():
        foreign = api(cast.cleo).post(URL, factories.submission(cast.detection), format="json")
        missing = api(cast.cleo).post(
            URL,
            factories.submission(cast.detection)
            | {"project": "00000000-0000-7000-8000-000000000000"},
            format="json",
        )
    assert refused(foreign, status=404) == refused(missing, status=404) == []
    assert foreign.json() == missing.json()


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1,", b"\xff\xfe", b'{"name": NaN}', b'{"name": "\xed\xa0\x80"}', b"x" * 100,
     b"[" * 5000],
)  # fmt: skip
def test_it_refuses_what_is_not_json(
    api: Api, cast: Cast, nothing_stored: Unchanged, body: bytes
) -> None:
    with nothing_stored():
        answer = api(cast.ben).post(URL, body, content_type="application/json")
    refused(answer)


@pytest.mark.parametrize("body", ["[]", "5", "null", '"text"', "true", "[{}]"])
def test_it_refuses_json_that_is_no_object(
    api: Api, cast: Cast, nothing_stored: Unchanged, body: str
) -> None:
    with nothing_stored():
        for url in (URL, f"{URL}/batch"):
            refused(api(cast.ben).post(url, body, content_type="application/json"))


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_it_takes_json_only(
    api: Api, cast: Cast, nothing_stored: Unchanged, content_type: str
) -> None:
    with nothing_stored():
        answer = api(cast.ben).post(URL, "name=x", content_type=content_type)
    refused(answer, status=415)


def test_an_unknown_field_is_told_the_known_ones(api: Api, cast: Cast) -> None:
    one = factories.submission(cast.detection)
    odd = one | {"x": 1, "pod_sets": [one["pod_sets"][0] | {"x": 1}]}
    told = {
        fault["pointer"]: fault["message"]
        for fault in api(cast.ben).post(URL, odd, format="json").json()["errors"]
    }
    assert told == {
        "/x": "There is no such field; known: cluster_loss_requeue_s, clusters, depends_on, "
        "gates, grace_s, labels, move_to_better, name, notice_s, pod_sets, preemptible, "
        "priority_class, project, retries, run_time_limit_s, topology.",
        "/pod_sets/0/x": "There is no such field; known: any_order, args, command, count, "
        "cpu_milli, env, flavors, gpu_count, gpu_memory_mib, gpu_milli, image, least_isolation, "
        "memory_mib, min_count, name, topology, wish.",
    }


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 10 * 1024 * 1024])
def test_it_refuses_a_large_body(
    api: Api, cast: Cast, nothing_stored: Unchanged, size: int
) -> None:
    body = b'{"name": "' + b"x" * size + b'"}'
    with nothing_stored():
        answer = api(cast.ben).post(URL, body, content_type="application/json")
    refused(answer, status=413)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"workloads": []}, "/workloads"),
        ({"workloads": None}, "/workloads"),
        ({"extra": 1}, "/extra"),
        ({"project": "x"}, "/project"),
    ],
)
def test_it_refuses_a_bad_batch(
    api: Api, cast: Cast, nothing_stored: Unchanged, change: dict[str, Json], pointer: str
) -> None:
    one = factories.submission(cast.detection)
    del one["project"]
    body = {"project": str(cast.detection.id), "workloads": [one]} | change
    with nothing_stored():
        answer = api(cast.ben).post(f"{URL}/batch", body, format="json")
    assert pointer in [found for found, _ in refused(answer)]


def test_one_bad_workload_of_a_batch_refuses_all_of_it(
    api: Api, cast: Cast, nothing_stored: Unchanged
) -> None:
    one = factories.submission(cast.detection)
    del one["project"]
    bad = one | {"name": "a\0"}
    hopeless = one | {"pod_sets": [one["pod_sets"][0] | {"gpu_count": 9}]}
    unknown = one | {"clusters": ["nowhere"]}
    for other, pointer in (
        (bad, "/workloads/1/name"),
        (hopeless, "/workloads/1/pod_sets/0/gpu_count"),
        (unknown, "/workloads/1/clusters/0"),
        ({}, "/workloads/1/name"),
    ):
        body = {"project": str(cast.detection.id), "workloads": [one, other]}
        with nothing_stored():
            answer = api(cast.ben).post(f"{URL}/batch", body, format="json")
        assert pointer in [found for found, _ in refused(answer)]


def test_a_batch_has_at_most_500(api: Api, cast: Cast, nothing_stored: Unchanged) -> None:
    body = {"project": str(cast.detection.id), "workloads": [{}] * 501}
    with nothing_stored():
        answer = api(cast.ben).post(f"{URL}/batch", body, format="json")
    assert refused(answer) == [("/workloads", "invalid")]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("state=DONE", "?state"),
        ("state=PENDING,DONE", "?state"),
        ("state=PENDING&state=RUNNING", "?state"),
        ("project=x", "?project"),
        ("since=yesterday", "?since"),
        ("since=2026-01-01T00:00:00", "?since"),
        ("since=0000-99-99T99:99:99Z", "?since"),
        ("limit=0", "?limit"),
        ("limit=201", "?limit"),
        ("limit=1.0", "?limit"),
        ("limit=\u0661", "?limit"),
        ("cursor=x", "?cursor"),
        ("cursor=" + "x" * 600, "?cursor"),
        ("cursor=W251bGxd", "?cursor"),
        ("cursor=WzVd", "?cursor"),
        ("cursor=W1tdXQ", "?cursor"),
        ("name=a%00", "?name"),
        ("mine=1", "?mine"),
        ("order=-name", "?order"),
        ("project__tenant=1", "?project__tenant"),
    ],
)
def test_a_list_takes_known_filters_only(api: Api, cast: Cast, query: str, pointer: str) -> None:
    assert refused(api(cast.ben).get(f"{URL}?{query}"))[0][0] == pointer


def test_an_unknown_path_is_a_problem_document_too(api: Api, cast: Cast) -> None:
    answer = api(cast.ben).get("/api/v1/nothing")
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "not-found"
