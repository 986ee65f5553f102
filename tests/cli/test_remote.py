"""`berth` against a real server: what it sends, shows and refuses."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.db.models import F

from clusters.models import Cluster, Flavor, FlavorKind
from controlplane.cli import explanation
from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.models import Estimate, Workload
from tenants.models import PreferredFlavor, Project
from tests import factories
from tests.cli.conftest import Berth
from tests.cli.test_manifest import JOB, POD
from tests.conftest import Cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.part_web]


def test_it_submits_a_job_by_the_projects_slug(berth: Berth, cast: Cast) -> None:
    done = berth("submit", "-f", "-", "--project", "detection", text_in=JOB)
    assert done.exit_code == 0, done.output
    row = Workload.objects.get()
    assert done.output == f"workload {row.id} PENDING\n"
    pod_set = row.pod_sets.get()
    assert (pod_set.count, pod_set.gpu_count, row.priority_class) == (2, 8, "high")
    assert [each.flavor.name for each in pod_set.accepted.all()] == ["h100-80gb"]


def test_it_says_line_by_line_what_it_does_not_take(berth: Berth, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace("restartPolicy: Never", "hostNetwork: true\n      nodeName: n1"))
    done = berth("submit", "-f", str(path), "--project", "detection")
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert lines[0] == "Error: the manifest is not accepted:"
    assert [line.split(": ")[:3] for line in lines[1:]] == [
        ["job.yaml", "line 13", "spec.template.spec.restartPolicy"],
        ["job.yaml", "line 14", "spec.template.spec.hostNetwork"],
        ["job.yaml", "line 15", "spec.template.spec.nodeName"],
    ]
    assert not Workload.objects.exists()


def test_it_shows_the_servers_reason_by_the_option_it_means(berth: Berth) -> None:
    done = berth(
        "submit", "-f", "-", "--project", "detection", "--cluster", "nowhere", text_in=JOB
    )
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert lines[0] == "Error: The input is not acceptable:"
    assert lines[1].startswith("--cluster: There is no cluster 'nowhere'")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (POD.replace("mig-1g.10gb: 1", "gpu: 1"), ("--gpu-memory", "10GB")),
        (POD.replace("mig-1g.10gb: 1", "gpu: 1\n        nvidia.com/gpumem: 9537"), ()),
    ],
    ids=["option", "manifest"],
)
def test_it_asks_for_memory_of_a_gpu(
    berth: Berth, cast: Cast, text: str, said: tuple[str, ...]
) -> None:
    share = factories.flavor("t4.share", FlavorKind.SHARE, model="T4", memory_mib=15_360)
    factories.quota(cast.detection, share)
    north = Cluster.objects.order_by("name")[0]
    factories.node(north, "t4", gpus=1, model="T4", share_isolation="none", share_replicas=4)
    done = berth("submit", "-f", "-", "--project", "detection", *said, text_in=text)
    assert done.exit_code == 0, done.output
    pod_set = Workload.objects.get().pod_sets.get()
    assert (pod_set.gpu_count, pod_set.gpu_milli, pod_set.gpu_memory_mib) == (1, 1000, 9537)
    assert [each.flavor.name for each in pod_set.accepted.all()] == ["t4.share"]


def test_memory_of_several_gpus_is_refused(berth: Berth) -> None:
    asked = ("submit", "-f", "-", "--project", "detection", "--gpu-memory", "10GB")
    done = berth(*asked, text_in=JOB)
    assert done.exit_code == 2
    assert "memory of a GPU goes with one, as nvidia.com/gpu: 1" in done.output
    assert not Workload.objects.exists()


@pytest.mark.parametrize(
    ("resource", "flavor", "model"),
    [
        ("amd.com/gpu", "mi300x", "AMD Instinct MI300X"),
        ("gpu.intel.com/xe", "max1550", "Intel Data Center GPU Max 1550"),
        ("gpu.intel.com/i915", "max1550", "Intel Data Center GPU Max 1550"),
    ],
)
def test_a_gpu_of_another_maker_is_asked_for_by_its_resource(
    berth: Berth, cast: Cast, resource: str, flavor: str, model: str
) -> None:
    made = factories.flavor(flavor, model=model)
    factories.quota(cast.detection, made)
    factories.node(Cluster.objects.order_by("name")[0], "other", gpus=8, model=model)
    asked = ("submit", "-f", "-", "--project", "detection")
    text = POD.replace("nvidia.com/mig-1g.10gb", resource)
    done = berth(*asked, text_in=text)
    assert done.exit_code == 0, done.output
    pod_set = Workload.objects.get().pod_sets.get()
    assert (pod_set.gpu_count, pod_set.gpu_milli) == (1, 1000)
    assert [each.flavor.name for each in pod_set.accepted.all()] == [flavor]
    told = berth(*asked, "--least-gpu-memory", "1GB", "--print", text_in=text).output
    maker = "amd" if "amd" in resource else "intel"
    assert json.loads(told[told.index("{") :])["pod_sets"][0]["wish"]["vendors"] == [maker]
    done = berth(*asked, "--flavor", "h100-80gb", text_in=text)
    assert done.exit_code == 2
    assert f"asks for whole GPUs of {maker}, which --flavor h100-80gb is not" in done.output
    done = berth(*asked, "--vendor", "nvidia", text_in=text)
    assert f"asks for GPUs of {maker}: --vendor nvidia makes none" in done.output
    done = berth(*asked, "--flavor", flavor, text_in=POD.replace("mig-1g.10gb", "gpu"))
    assert f"asks for whole GPUs of nvidia, which --flavor {flavor} is not" in done.output


def test_it_accepts_flavors_in_any_order(berth: Berth) -> None:
    asked = ("submit", "-f", "-", "--project", "detection", "--any-order")
    told = berth(*asked, "--flavor", "h100-80gb", "--print", text_in=JOB).output
    assert json.loads(told)["pod_sets"][0]["any_order"] is True
    for wish in ((), ("--least-gpu-memory", "1GB")):
        done = berth(*asked, *wish, text_in=JOB)
        assert (done.exit_code, "--any-order is said of what --flavor" in done.output) == (2, True)


def test_it_asks_for_isolation_between_neighbours(berth: Berth) -> None:
    asked = ("submit", "-f", "-", "--project", "detection", "--least-isolation")
    told = berth(*asked, "memory", "--print", text_in=JOB).output
    assert json.loads(told)["pod_sets"][0]["least_isolation"] == "memory"
    assert berth(*asked, "hardware", text_in=JOB).exit_code == 0
    assert Workload.objects.get().pod_sets.get().least_isolation == "hardware"
    done = berth(*asked, "none", text_in=JOB)
    assert (done.exit_code, "'memory', 'hardware'" in done.output) == (2, True)


def test_a_dry_run_says_where_it_would_start_and_submits_nothing(berth: Berth) -> None:
    asked = ("submit", "-f", "-", "--project", "detection", "--dry-run")
    done = berth(*asked, text_in=JOB)
    told = done.output.splitlines()
    assert told[0] == "would start now on north: 2 pods on h100-80gb", done.output
    assert "with h100-80gb:" in told
    assert "  ok    What is free lies where its pods fit" in told
    answer = json.loads(berth(*asked, "-o", "json", text_in=JOB).output)
    start = {"cluster": "north", "flavors": ["h100-80gb"], "pods": 2, "choice": None}
    assert answer["start"] == start
    factories.cluster("south")
    told = berth(*asked, text_in=JOB).output.splitlines()
    assert told[1:3] == [
        "  north  taken: of those with room for all of it the cheapest, of those as cheap the one"
        " with least free; else the one where most of it starts",
        "  south  had no room for it",
    ]
    assert not Workload.objects.exists()


def test_a_dry_run_tells_what_is_charged_in_each_cluster_where_that_differs(berth: Berth) -> None:
    h100, south = Flavor.objects.get(), factories.cluster("south")
    factories.device(factories.node(south, "s1", gpus=0), 0)
    factories.rate(h100, "2.5")
    factories.rate(h100, "2.4", cluster=Cluster.objects.get(name="north"))
    told = berth("submit", "-f", "-", "--project", "detection", "--dry-run", text_in=JOB)
    north, second = told.output.splitlines()[1:3]
    assert north.endswith("where most of it starts (38.4 EUR an hour)")
    assert second == (
        "  south  not asked: it costs more there, or has no price there yet (40 EUR an hour)"
    )


def test_a_dry_run_of_a_server_that_tells_no_choice_is_told_without() -> None:
    start: dict[str, object] = {"cluster": "north", "flavors": ["h100"], "pods": 2}
    answer = {"start": start, "relaxations": (), "checks": (), "options": ()}
    assert list(explanation.lines(answer)) == ["would start now on north: 2 pods on h100"]
    start["choice"] = {"clusters": [{"cluster": "north", "text": "taken"}]}  # nor what is charged
    assert list(explanation.lines(answer))[1] == "  north  taken"


def test_a_dry_run_says_why_it_would_wait_and_what_would_help(berth: Berth, cast: Cast) -> None:
    Project.objects.filter(id=cast.detection.id).update(user_max_gpus_milli=8000)
    asked = ("submit", "-f", "-", "--project", "detection", "--dry-run")
    told = berth(*asked, text_in=JOB).output.splitlines()
    assert told[0].startswith("would wait: 16 GPUs asked;")
    assert (
        "  help  Start with at least 1 of its pods, not 2; more start with them if they fit."
        " It would start now." in told
    )
    assert [line.split()[0] for line in told if "may run one more" in line] == ["NO"]
    assert not Workload.objects.exists()


def test_it_explains_what_waits(berth: Berth, cast: Cast) -> None:
    Project.objects.filter(id=cast.detection.id).update(user_max_gpus_milli=8000)
    berth("submit", "-f", "-", "--project", "detection", text_in=JOB)
    row = Workload.objects.get()
    told = berth("explain", str(row.id)).output.splitlines()
    assert told[0].startswith("would wait: 16 GPUs asked;"), told
    assert [line.split()[0] for line in told if "may run one more" in line] == ["NO"]
    answer = json.loads(berth("explain", str(row.id), "-o", "json").output)
    assert answer["reason"]["text"] in told[0]
    Workload.objects.update(state=State.CANCELLED, version=F("version") + 1, ended_at=clock.now())
    assert "does not wait: only what waits is explained." in berth("explain", str(row.id)).output
    assert "'train' is not a valid UUID" in berth("explain", "train").output


def test_printing_sends_nothing(berth: Berth, cast: Cast) -> None:
    done = berth(
        "submit", "-f", "-", "--project", str(cast.detection.id), "--print",
        "--priority", "low", "--move-to-better", "--not-preemptible", "--notice", "90",
        "--requeue-after-loss", "15",
        text_in=JOB,
    )  # fmt: skip
    body = json.loads(done.output)
    assert (body["project"], body["priority_class"]) == (str(cast.detection.id), "low")
    assert (body["preemptible"], body["move_to_better"], body["notice_s"]) == (False, True, 90)
    assert body["cluster_loss_requeue_s"] == 900
    assert not Workload.objects.exists()


def test_a_gpu_is_asked_for_by_what_it_has(berth: Berth) -> None:
    asked = ("submit", "-f", "-", "--project", "detection", "--vendor", "nvidia")
    told = berth(*asked, "--least-gpu-memory", "80GB", "--print", text_in=JOB).output
    [pod_set] = json.loads(told)["pod_sets"]
    assert pod_set["wish"] == {"least_memory_mib": 76_293, "vendors": ["nvidia"]}
    assert "flavors" not in pod_set
    told = berth(*asked, "--flavor", "h100-80gb", "--print", text_in=JOB).output
    [pod_set] = json.loads(told)["pod_sets"]
    assert pod_set["flavors"] == ["h100-80gb"]
    assert pod_set["wish"] == {"least_memory_mib": 0, "vendors": ["nvidia"]}
    done = berth(*asked, "--least-gpu-memory", "200GB", text_in=JOB)
    assert done.exit_code == 1
    assert "--least-gpu-memory: No flavor of nvidia has 190734 MiB a GPU or more" in done.output
    done = berth(*asked, "--least-gpu-memory", "much", text_in=JOB)
    assert "'much' is no size, as 80GB or 40Gi." in done.output
    on_cores = JOB.replace('nvidia.com/gpu: "8"', "").replace("nvidia.com/gpu: 8", "")
    assert "--vendor are for whole GPUs." in berth(*asked, text_in=on_cores).output


def test_of_what_a_manifest_means_the_flavors_that_the_project_prefers_are_named(
    berth: Berth, cast: Cast
) -> None:
    h100 = Flavor.objects.get(name="h100-80gb")
    factories.flavor("a100", model="NVIDIA-A100-SXM4-80GB")
    asked = ("submit", "-f", "-", "--project", "detection")

    def flavors(*options: str, of: str = JOB) -> list[str]:
        [pod_set] = json.loads(berth(*asked, *options, "--print", text_in=of).output)["pod_sets"]
        named: list[str] = pod_set["flavors"]
        return named

    assert flavors() == ["a100", "h100-80gb"]
    PreferredFlavor.objects.create(project=cast.detection, flavor=h100, position=0)
    assert flavors() == ["h100-80gb"]
    assert flavors("--flavor", "a100") == ["a100"]
    mi300x = factories.flavor("mi300x", model="AMD Instinct MI300X")
    other = PreferredFlavor.objects.create(project=cast.detection, flavor=mi300x, position=1)
    assert flavors() == ["h100-80gb"]  # none that the manifest's resource does not mean
    other.delete()
    factories.mig_flavor("slice", profile="1g.10gb")
    mig = JOB.replace("nvidia.com/gpu", "nvidia.com/mig-1g.10gb")
    assert flavors(of=mig) == ["slice"]
    done = berth(*asked, text_in=JOB)
    assert done.exit_code == 0, done.output
    [accepted] = Workload.objects.get().pod_sets.get().accepted.all()
    assert (accepted.flavor, accepted.wished) == (h100, False)


@pytest.mark.parametrize(("option", "mode"), [("--within", "required"), ("--near", "preferred")])
def test_all_pods_in_one_rack_is_an_option(berth: Berth, option: str, mode: str) -> None:
    asked = ("submit", "-f", "-", "--project", "detection", option)
    body = json.loads(berth(*asked, "rack", "--print", text_in=JOB).output)
    assert body["topology"] == {"level": "rack", "mode": mode}
    done = berth(*asked, "row", text_in=JOB)
    assert done.exit_code == 1
    known = "zone, block, rack, nvlink, node"
    assert f"{option}: There is no topology level 'row'; known: {known}." in done.output


@pytest.mark.parametrize(
    ("option", "mode"), [("--groups-within", "required"), ("--groups-near", "preferred")]
)
def test_each_so_many_pods_in_one_domain_is_an_option(
    berth: Berth, option: str, mode: str
) -> None:
    asked = ("submit", "-f", "-", "--project", "detection", option)
    body = json.loads(berth(*asked, "1:nvlink", "--print", text_in=JOB).output)
    [pod_set] = body["pod_sets"]
    assert pod_set["topology"] == {"level": "nvlink", "mode": mode, "group_size": 1}
    done = berth(*asked, "1:row", text_in=JOB)
    assert f"{option}: There is no topology level 'row'" in done.output
    done = berth(*asked, "3:nvlink", text_in=JOB)
    assert f"{option}: Groups of 3 do not divide" in done.output
    assert "is not N:LEVEL, as 4:nvlink" in berth(*asked, "nvlink", text_in=JOB).output
    both = berth(
        *asked, "1:rack", "--groups-within", "1:rack", "--groups-near", "1:rack", text_in=JOB
    )
    assert "--groups-within and --groups-near exclude each other" in both.output


def test_what_has_to_be_and_what_had_better_be_exclude_each_other(berth: Berth) -> None:
    both = ("--within", "rack", "--near", "zone")
    done = berth("submit", "-f", "-", "--project", "detection", *both, text_in=JOB)
    assert done.exit_code == 2
    assert "--within and --near exclude each other" in done.output


def test_it_refuses_a_flavor_that_the_manifest_does_not_mean(berth: Berth) -> None:
    done = berth("submit", "-f", "-", "--project", "detection", text_in=POD)
    assert done.exit_code == 2
    assert "asks for MIG 1g.10gb; this installation has no such flavor" in done.output


def test_it_lists_shows_and_cancels(berth: Berth) -> None:
    berth("submit", "-f", "-", "--project", "detection", text_in=JOB)
    row = Workload.objects.get()
    table = berth("get", "--project", "detection", "--state", "PENDING").output.splitlines()
    assert table[0].split() == ["ID", "NAME", "STATE", "GPUS", "FLAVORS", "SUBMITTED", "WHY"]
    assert table[1].split()[:5] == [str(row.id), "train", "PENDING", "16", "h100-80gb"]
    assert json.loads(berth("get", str(row.id), "-o", "json").output)["name"] == "train"
    line = berth("queue", "--project", "detection").output.splitlines()[1]
    assert line.split()[:4] == ["1", str(row.id), "train", "16"]
    assert berth("cancel", str(row.id)).output == f"workload {row.id} CANCELLED\n"
    row.refresh_from_db()
    assert row.state == State.CANCELLED
    again = berth("cancel", str(row.id))
    assert again.exit_code == 1
    assert "has ended already" in again.output


def test_the_queue_says_from_when_its_minutes_count(berth: Berth) -> None:
    berth("submit", "-f", "-", "--project", "detection", text_in=JOB)
    row = Workload.objects.get()
    at = datetime(2026, 11, 21, 9, 30, 15, 250_000, tzinfo=UTC)
    Estimate.objects.create(workload=row, p50_s=300, p90_s=720, as_of=at, basis="limit", passes=1)
    head, line = berth("queue", "--project", "detection").output.splitlines()
    assert re.split(r"  +", head)[4:6] == ["STARTS IN", "AS OF"]
    assert re.split(r"  +", line)[4:6] == ["5-12 min", "2026-11-21T09:30:15+00:00"]


def test_it_explains_a_wrong_token_server_or_project(berth: Berth) -> None:
    assert "The token is not valid" in berth("get", BERTH_TOKEN="berth_x_y").output
    assert "does not answer" in berth("get", BERTH_SERVER="http://127.0.0.1:1").output
    assert "There is no project 'nope'" in berth("queue", "--project", "nope").output
    assert "has to be an http(s) address" in berth("get", BERTH_SERVER="ftp://x").output
    clear = berth("get", BERTH_SERVER="http://berth.example.org")
    assert (clear.exit_code, "in clear" in clear.output) == (2, True)


def test_it_loads_no_django() -> None:
    code = "import sys, controlplane.cli.remote; print('django' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
