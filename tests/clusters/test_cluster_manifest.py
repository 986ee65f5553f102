"""The manifest that Berth prints, and that its rights are what the adapter uses, no more."""

import base64
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command
from pytest_django import Settings

from clusters.adapters.kubernetes.owners import KINDS
from clusters.adapters.kubernetes.rights import (
    CATCHING,
    CLAIM_RIGHTS,
    CLASS_RIGHTS,
    DRA_RIGHTS,
    LOG_RIGHTS,
    MIG_RIGHTS,
    OF_PARTS,
    RIGHTS,
    Right,
)
from clusters.autoscaling import NodeRequest
from clusters.caught import OwnerRef
from clusters.confinement import Confinement
from clusters.parts import Part
from clusters.published import Pin
from controlplane.kernel.ids import uuid7
from tests.clusters.acting import delete, opened, read, request
from tests.clusters.authority import Authority
from tests.simulation import Simulator, simulator

__all__ = ["simulator"]

pytestmark = pytest.mark.part_simulator


def printed(*arguments: str) -> str:
    output = StringIO()
    call_command("cluster_manifest", *arguments, stdout=output)
    return output.getvalue()


def test_it_says_what_each_right_is_for_and_how_to_get_a_token() -> None:
    manifest = printed()
    for right in RIGHTS:
        assert f"#   {right}: {right.why}\n" in manifest
    assert "kubectl create token berth --namespace berth-system --duration 720h\n" in manifest
    assert "--duration 24h\n" in printed("--token-hours", "24")


@pytest.mark.parametrize(("one", "other"), [("berth", "two"), ("lab", "berth-lab")])
def test_two_installations_in_a_cluster_have_nothing_in_common(
    settings: Settings, one: str, other: str
) -> None:
    def objects(manifest: str) -> set[tuple[str, str]]:
        return {(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(manifest)}

    settings.BERTH_INSTALLATION = one
    first = printed()
    settings.BERTH_INSTALLATION = other
    second = printed()
    assert len(objects(first)) == 11
    assert objects(first).isdisjoint(objects(second))
    assert f"berth.dev/installation: {other}" in second


@pytest.mark.parametrize("installation", ["kube", "admin", "view", "berth", "berth-lab", "lab"])
def test_nothing_of_the_cluster_itself_is_touched(settings: Settings, installation: str) -> None:
    settings.BERTH_INSTALLATION = installation
    for one in yaml.safe_load_all(printed()):
        assert one["metadata"]["name"].startswith("berth")


@pytest.mark.parametrize("name", ["", "Berth", "berth_1", "berth-", "a" * 41, "berth: {}", "a\nb"])
def test_an_installation_that_can_name_nothing_is_told(settings: Settings, name: str) -> None:
    settings.BERTH_INSTALLATION = name
    with pytest.raises(CommandError, match="which names nothing in a cluster: use 1 to 40"):
        printed()


def test_for_a_user_of_the_cluster_no_account_is_made() -> None:
    manifest = printed("--user", "berth@example.test")
    documents = list(yaml.safe_load_all(manifest))
    objects = {one["kind"]: one for one in documents}
    assert len(documents) == 10
    assert objects["ServiceAccount"]["metadata"]["name"] == "berth-workload"  # its pods'
    assert objects["ClusterRoleBinding"]["subjects"] == [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "berth@example.test"}
    ]
    [condition] = objects["ValidatingAdmissionPolicy"]["spec"]["matchConditions"]
    assert condition["expression"] == "request.userInfo.username != 'berth@example.test'"
    assert "a credential of the user berth@example.test" in manifest
    assert "create token" not in manifest


def test_what_cuts_nodes_anew_is_granted_only_where_it_is_asked_for(settings: Settings) -> None:
    settings.BERTH_MIG_CONFIG = "nvidia/ways"
    plain, wide = printed(), printed("--mig")
    for right in MIG_RIGHTS:
        assert f"#   {right}: {right.why}\n" in wide
        assert str(right) not in plain
    before = list(yaml.safe_load_all(plain))
    objects = list(yaml.safe_load_all(wide))
    assert objects[: len(before)] == before
    role, _, narrow, binding = objects[len(before) :]
    assert [rule["resources"] for rule in role["rules"]] == [["nodes"]]
    assert narrow["metadata"]["namespace"] == binding["metadata"]["namespace"] == "nvidia"
    assert narrow["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["ways"],
            "verbs": ["get", "patch"],
        }
    ]
    assert binding["subjects"][0]["name"] == "berth"


def test_events_and_logs_are_read_where_that_is_asked_for() -> None:
    def objects(*arguments: str) -> dict[tuple[str, str], object]:
        made = yaml.safe_load_all(printed(*arguments))
        return {(one["kind"], one["metadata"]["name"]): one for one in made}

    plain, wide = objects(), objects("--logs")
    assert wide.keys() - plain.keys() == {
        ("ClusterRole", "berth-logs"),
        ("ClusterRoleBinding", "berth-logs"),
    }
    role: Any = wide["ClusterRole", "berth-logs"]  # Any: YAML
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]},
    ]
    for right in LOG_RIGHTS:
        assert f"#   {right}: {right.why}\n" in printed("--logs")
        assert str(right) not in printed()


def test_what_others_make_is_caught_where_that_is_asked_for() -> None:
    added = {
        (one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(printed("--catch"))
    } - {(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(printed())}
    kinds = ("ClusterRole", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
    assert added == {
        (f"{kind}{part}", "berth-catch") for kind in kinds for part in ("", "Binding")
    }
    manifest = printed("--catch", "--user", "fleet")
    for right in CATCHING:
        assert f"#   {right}: {right.why}\n" in manifest
    assert manifest.count("request.userInfo.username != 'fleet'") == 3


def test_where_policies_change_no_pods_the_cluster_asks_berth(
    tmp_path: Path, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["berth.example.org"]
    pem = Authority().pem
    authority = tmp_path / "ca.pem"
    authority.write_text(f"{Authority().issue('berth').key_pem}{pem}")
    asked = ("--catch-url", "https://berth.example.org:8443")
    [told, trusted] = [
        {one["kind"]: one for one in yaml.safe_load_all(printed(*asked, *more, "--user", "fleet"))}
        for more in (("--catch-ca", str(authority)), ())
    ]
    by_policy = {one["kind"] for one in yaml.safe_load_all(printed("--catch", "--user", "fleet"))}
    assert by_policy - told.keys() == {
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
    [hook] = told["MutatingWebhookConfiguration"]["webhooks"]
    assert hook["clientConfig"] == {
        "url": "https://berth.example.org:8443/admission/pods",
        "caBundle": base64.b64encode(pem.encode()).decode(),
    }
    assert hook["failurePolicy"] == "Fail"
    assert hook["namespaceSelector"]["matchLabels"] == {"berth.dev/installation": "berth"}
    [apart] = hook["namespaceSelector"]["matchExpressions"]
    assert (apart["operator"], apart["values"]) == ("NotIn", ["berth-system"])
    assert "fleet" in hook["matchConditions"][0]["expression"]
    [hook] = trusted["MutatingWebhookConfiguration"]["webhooks"]
    assert "caBundle" not in hook["clientConfig"]


def test_devices_are_claimed_where_that_is_asked_for() -> None:
    def objects(manifest: str) -> set[tuple[str, str]]:
        return {(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(manifest)}

    manifest = printed("--dra", "--user", "fleet")
    assert objects(manifest) - objects(printed("--user", "fleet")) == {
        ("DeviceClass", "berth"),
        ("ClusterRole", "berth-dra"),
        ("ClusterRoleBinding", "berth-dra"),
        ("ValidatingAdmissionPolicy", "berth-claims"),
        ("ValidatingAdmissionPolicyBinding", "berth-claims"),
        ("ValidatingAdmissionPolicy", "berth-claimants"),
        ("ValidatingAdmissionPolicyBinding", "berth-claimants"),
    }
    for right in (*DRA_RIGHTS, *CLASS_RIGHTS):
        assert f"#   {right}: {right.why}\n" in manifest
    assert manifest.count("request.userInfo.username != 'fleet'") == 3


def test_what_nodes_can_come_is_seen_where_that_is_asked_for() -> None:
    plain, wide = (
        list(yaml.safe_load_all(printed())),
        list(yaml.safe_load_all(printed("--autoscale"))),
    )
    priority, role, binding, at_home, bound = (one for one in wide if one not in plain)
    assert (priority["kind"], priority["value"]) == ("PriorityClass", -10)
    assert [(rule["resources"], rule["verbs"]) for rule in role["rules"]] == [
        (["nodepools"], ["list"]),
        (["nodeclaims"], ["list"]),
        (["provisioningrequests"], ["list"]),
    ]
    assert (at_home["kind"], at_home["metadata"]["namespace"]) == ("Role", "berth-system")
    assert [(rule["resources"], rule["verbs"]) for rule in at_home["rules"]] == [
        (["provisioningrequests"], ["create", "get", "delete"]),
        (["podtemplates"], ["list", "create", "get", "delete"]),
    ]
    assert [one["subjects"][0]["name"] for one in (binding, bound)] == ["berth", "berth"]


@pytest.mark.parametrize("user", ["", "a'b", "a b", "a\\b", "a\nb", "a" * 254])
def test_what_is_no_user_is_refused(user: str) -> None:
    with pytest.raises(CommandError, match="is no user's name"):
        printed("--user", user)


def test_a_token_is_good_for_an_hour_at_least() -> None:
    with pytest.raises(CommandError, match="for 1 to 8760 hours, not 0"):
        printed("--token-hours", "0")


def test_the_adapter_uses_each_right_and_no_other(simulator: Simulator) -> None:
    port = simulator.connect(watch_timeout_s=1)
    for listing, watch in (
        (port.list_nodes(), port.watch_nodes),
        (port.list_pods(), port.watch_pods),
        (port.list_resource_slices(), port.watch_resource_slices),
        (port.list_device_claims(), port.watch_device_claims),
    ):
        with watch(resource_version=listing.resource_version) as events:
            assert list(events) is not None
    for _ in range(2):  # made, then found there
        port.confine(wanted=Confinement("berth-project"))
    assert list(port.probe())
    gang = {"namespace": "berth-project", "name": "gang", "workload": "gang", "attempt": 1}
    port.ensure_service(**gang)  # type: ignore[arg-type]  # by name
    port.ensure_service(**gang)  # type: ignore[arg-type]  # found there
    port.delete_service(**gang)  # type: ignore[arg-type]  # as above
    asked = replace(request(), namespace="berth-project")
    pinned = request(pins=(Pin("gpu.nvidia.com", "GPU-1"),))
    pod = opened(port, asked)
    assert read(port, pod) is not None
    port.give_notice(
        namespace=pod.namespace, name=pod.name, uid=pod.uid, until=datetime(2030, 1, 1, tzinfo=UTC)
    )
    delete(port, pod, grace_s=0)
    for _ in range(2):
        gated = port.create_pod(request=replace(pinned, namespace="berth-project"))
    assert port.read_device_classes()
    used = set(simulator.stats()["requests"])
    # To a patch that makes an object, a real API server asks for "create" too.
    made = {f"create {act.removeprefix('patch ')}" for act in used if act.startswith("patch ")}
    plain, of = named(RIGHTS), {part: named(rights) for part, rights in OF_PARTS.items()}
    # Of other parts the probe looks whether what they need is there.
    looked = {"get configmaps", "list nodepools.karpenter.sh"}
    # Of claims that others make there are tests on a real API server alone (tests/kube).
    assert (used | made) - looked == plain | of[Part.DRA] - named(CLAIM_RIGHTS)
    port.write_mig_config(config="berth-berth-0123456789ab", cuts=[{}], keep=())
    node = port.read_node(name="a100-mig-0")
    assert node is not None
    port.cut(node=node, config="all-disabled")
    assert port.read_autoscaling() is not None
    id = str(uuid7())
    asked_for = NodeRequest("nodes", id, id, 1, "some.class", {}, {}, {}, 1, 1)
    port.create_node_request(request=asked_for)
    [asked_by] = port.list_node_requests()
    port.delete_node_request(found=replace(asked_by, uid="another", template_uid="another"))
    port.delete_node_request(found=asked_by)
    assert port.read_events(namespace=pod.namespace, uid=pod.uid) == []
    assert not port.read_log(namespace=gated.namespace, name=gated.name, uid=gated.uid).text
    for group, kind in KINDS:
        owner = OwnerRef(f"{group}/v1".removeprefix("/"), kind, "train", "of-nobody")
        assert port.read_owner(namespace=pod.namespace, owner=owner) is None
    port.close()
    every = plain.union(*of.values()) - named(CLAIM_RIGHTS)
    assert set(simulator.stats()["requests"]) | made == every


def named(rights: Iterable[Right]) -> set[str]:
    return {str(right) for right in rights}
