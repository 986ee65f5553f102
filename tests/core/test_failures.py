"""Which class a failure is of, by what clusters say of pods, and what is tried again."""

import pytest

from scheduler.core.failures import (
    FailureClass,
    Retries,
    classify,
    describe,
    may_be_its_device,
    worst,
)

REASONS = {
    "OOMKilled": FailureClass.OUT_OF_MEMORY,
    "DeadlineExceeded": FailureClass.RUN_TIME_LIMIT,
    "ErrImagePull: not found": FailureClass.START_ERROR,
    "ImagePullBackOff": FailureClass.START_ERROR,
    "CreateContainerConfigError": FailureClass.START_ERROR,
    "Error": FailureClass.EXIT_CODE,
    "": FailureClass.EXIT_CODE,
    "Something new": FailureClass.EXIT_CODE,
    "UnexpectedAdmissionError": FailureClass.REFUSED,
    "OutOfcpu": FailureClass.REFUSED,
    "OutOfnvidia.com/gpu": FailureClass.REFUSED,
    "NeverStarted": FailureClass.REFUSED,
    "NodeLost": FailureClass.NODE_LOST,
    "Terminated": FailureClass.NODE_LOST,  # a kubelet that shuts down
    "DeletionByPodGC": FailureClass.NODE_LOST,
    "DeletionByTaintManager": FailureClass.NODE_LOST,
    "DeletionByDeviceTaintManager": FailureClass.NODE_LOST,
    "DeviceLost: its node n1 has lost devices": FailureClass.NODE_LOST,
    "Evicted": FailureClass.EVICTED,
    "EvictionByEvictionAPI": FailureClass.EVICTED,
    "PreemptionByScheduler": FailureClass.EVICTED,
    "Deleted": FailureClass.EVICTED,
    "PodGone": FailureClass.EVICTED,
}


@pytest.mark.parametrize(("reason", "failure"), REASONS.items())
def test_a_clusters_word_has_its_class(reason: str, failure: FailureClass) -> None:
    assert classify(reason) is failure


def test_what_is_gone_from_a_node_that_is_down_went_with_it() -> None:
    for reason in ("PodGone", "Deleted"):
        assert classify(reason, node_down=True) is FailureClass.NODE_LOST
    assert classify("EvictionByEvictionAPI", node_down=True) is FailureClass.NODE_LOST
    assert classify("EvictionByEvictionAPI") is FailureClass.EVICTED
    assert classify("Evicted", node_down=True) is FailureClass.EVICTED
    assert classify("Error", node_down=True) is FailureClass.EXIT_CODE


def test_a_device_may_be_why_a_program_ended_by_itself_or_a_pod_was_taken_away() -> None:
    """Not of what it used too much of, nor of what could not start."""
    assert {reason for reason in REASONS if may_be_its_device(reason)} == {
        *("Error", "", "Something new", "EvictionByEvictionAPI", "Deleted", "PodGone"),
        "DeletionByDeviceTaintManager",
    }


def test_the_works_own_failure_goes_before_what_was_stopped_for_it() -> None:
    assert worst([FailureClass.EVICTED, FailureClass.EXIT_CODE]) is FailureClass.EXIT_CODE
    assert worst([FailureClass.EVICTED, FailureClass.NODE_LOST]) is FailureClass.NODE_LOST
    every = list(FailureClass)
    assert worst(reversed(every)) is FailureClass.OUT_OF_MEMORY


def test_a_failure_is_told_with_what_the_cluster_said_of_it() -> None:
    told = describe(FailureClass.OUT_OF_MEMORY, reasons=["OOMKilled"], exit_codes=[137])
    assert told == "out of memory: OOMKilled; exit code 137"
    told = describe(FailureClass.EXIT_CODE, reasons=["Error"], exit_codes=[3])
    assert told == "its work failed: exit code 3"
    # The exit code of a pod that went down with its node says nothing.
    told = describe(FailureClass.NODE_LOST, reasons=["NodeLost"], exit_codes=[137])
    assert told == "its node was lost: NodeLost"
    assert describe(FailureClass.EXIT_CODE, reasons=[""], exit_codes=[]) == "its work failed"
    lost = "DeviceLost: GPU-1 of node n1 is sick or gone"
    told = describe(FailureClass.NODE_LOST, reasons=[lost], exit_codes=[1])
    assert told == "its device was lost: GPU-1 of node n1 is sick or gone"
    told = describe(FailureClass.NODE_LOST, reasons=[lost, "NodeLost"], exit_codes=[])
    assert told == f"its node was lost: {lost}; NodeLost"


def refusal(retries: Retries, failure: FailureClass, *codes: int, **tries: int) -> str:
    tries = {"failures": 0, "node_losses": 0} | tries
    return retries.refusal(failure, exit_codes=codes, **tries)


def test_by_default_what_the_cluster_did_is_tried_again_and_what_the_work_did_is_not() -> None:
    again = {failure for failure in FailureClass if not refusal(Retries(), failure)}
    assert again == {FailureClass.REFUSED, FailureClass.NODE_LOST, FailureClass.EVICTED}


def test_lost_nodes_and_other_failures_have_a_budget_each() -> None:
    retries = Retries(limit=1)
    assert refusal(retries, FailureClass.EVICTED, node_losses=9) == ""
    assert refusal(retries, FailureClass.EVICTED, failures=1) == "given up after 2 tries"
    assert refusal(retries, FailureClass.NODE_LOST, failures=1, node_losses=19) == ""
    told = refusal(retries, FailureClass.NODE_LOST, node_losses=20)
    assert told == "given up after 21 tries"
    assert refusal(Retries(limit=0), FailureClass.EVICTED) == "given up after 1 try"


def test_exit_codes_are_tried_again_when_each_of_them_is_listed() -> None:
    retries = Retries(exit_codes=(42,))
    assert refusal(retries, FailureClass.EXIT_CODE, 42) == ""
    assert "do not include exit-code" in refusal(retries, FailureClass.EXIT_CODE, 42, 1)
    assert "do not include exit-code" in refusal(retries, FailureClass.EXIT_CODE)
    assert "do not include out-of-memory" in refusal(retries, FailureClass.OUT_OF_MEMORY, 42)
    assert refusal(Retries(on=(FailureClass.EXIT_CODE,)), FailureClass.EXIT_CODE, 1) == ""


def test_what_is_tried_again_for_its_exit_code_is_so_on_a_lost_device_too() -> None:
    lost = FailureClass.NODE_LOST
    for retries in (Retries(on=(), exit_codes=(42,)), Retries(on=(FailureClass.EXIT_CODE,))):
        assert refusal(retries, lost, 42) == ""
        assert "do not include node-lost" in refusal(retries, lost)
    assert "do not include node-lost" in refusal(Retries(on=(), exit_codes=(42,)), lost, 42, 1)
    assert "do not include node-lost" in refusal(Retries(on=()), lost, 42)
