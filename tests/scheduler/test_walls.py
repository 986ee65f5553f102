"""The second wall: it is where the quota is, and never below what the planner's ledger lets in."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.quota.quota import Book
from scheduler.core.snapshot import CohortView, DeviceMode, FlavorKind, QueueView, QuotaView
from scheduler.core.units import CohortId, FlavorId, ProjectId
from scheduler.loop.dispatching.walls import Entitled, Hardware, limits
from scheduler.loop.pods.claims import Pod
from scheduler.loop.pods.requests import pod_request
from tests.scheduler.test_requests import pod

H100, A100 = "H100", "A100"
WHOLE = Hardware(
    H100, DeviceMode.WHOLE, "", 16, "nvidia.com/gpu", "nvidia.com/gpu.shared", 1, "", False
)
SHARED = WHOLE._replace(number=4, share_replicas=4, share_isolation="none")
SLICED = WHOLE._replace(mode=DeviceMode.MIG_STATIC, profile="1g.10gb", number=14)
SINGLE = SLICED._replace(mig_single=True)
DYNAMIC = WHOLE._replace(mode=DeviceMode.MIG_DYNAMIC, number=2)
AMD = Hardware("MI300X", DeviceMode.WHOLE, "", 8, "amd.com/gpu", "amd.com/gpu", 1, "", False)


def entitled(kind: str, milli: int | None, *, profile: str = "", model: str = H100) -> Entitled:
    isolation = "none" if kind == "share" else "hardware"
    return Entitled(FlavorKind(kind), model, profile, isolation, milli)


def wall(*hardware: Hardware, of: list[Entitled]) -> dict[str, int]:
    return dict(limits(hardware=hardware, entitled=of))


@pytest.mark.parametrize(
    ("hardware", "of", "most"),
    [
        pytest.param(WHOLE, entitled("whole", 4000), {"nvidia.com/gpu": 4}, id="its quota"),
        pytest.param(WHOLE, entitled("whole", 99_000), {"nvidia.com/gpu": 16}, id="what is there"),
        pytest.param(WHOLE, entitled("whole", None), {"nvidia.com/gpu": 16}, id="no limit"),
        pytest.param(WHOLE, entitled("whole", 0), {"nvidia.com/gpu": 0}, id="none of it"),
        pytest.param(
            WHOLE, entitled("whole", 9000, model=A100), {"nvidia.com/gpu": 0}, id="another model"
        ),
        pytest.param(AMD, entitled("whole", 9000, model="MI300X"), {"amd.com/gpu": 8}, id="amd"),
        pytest.param(
            SLICED, entitled("mig", 3000, profile="1g.10gb"), {"nvidia.com/mig-1g.10gb": 3},
            id="slices",
        ),
        pytest.param(
            SINGLE, entitled("mig", 3000, profile="1g.10gb"), {"nvidia.com/gpu": 3},
            id="slices that are asked for as devices",
        ),
        pytest.param(
            DYNAMIC, entitled("mig", None, profile="1g.10gb"), {"nvidia.com/mig-1g.10gb": 16},
            id="slices on demand",
        ),
        pytest.param(
            SHARED, entitled("whole", 2000), {"nvidia.com/gpu.shared": 8}, id="all of its replicas"
        ),
        pytest.param(
            SHARED, entitled("share", 3), {"nvidia.com/gpu.shared": 3}, id="a replica a thousandth"
        ),
    ],
)  # fmt: skip
def test_it_is_where_the_quota_is(hardware: Hardware, of: Entitled, most: dict[str, int]) -> None:
    assert wall(hardware, of=[of]) == most


def test_flavors_that_are_asked_for_alike_add_up() -> None:
    both = [entitled("whole", 4000), entitled("mig", 3000, profile="1g.10gb")]
    assert wall(WHOLE, SINGLE, of=both) == {"nvidia.com/gpu": 7}


FLAVORS = [
    ("whole", H100, ""),
    ("whole", A100, ""),
    ("mig", H100, "1g.10gb"),
    ("mig", H100, "3g.40gb"),
    ("share", H100, ""),
]
KINDS = [
    WHOLE,
    SHARED,
    SHARED._replace(share_replicas=10),
    SLICED,
    SLICED._replace(profile="3g.40gb", number=4),
    SINGLE,
    DYNAMIC,
    WHOLE._replace(model=A100, number=8),
]
OURS = ProjectId("ours")


class Play:
    """One project, others beside it in a tree, and a cluster; what it holds, pod by pod."""

    def __init__(self, pick: Random) -> None:
        self.pick = pick
        self.hardware = pick.sample(KINDS, pick.randint(1, len(KINDS)))
        self.pods: list[tuple[FlavorId, int, Pod]] = []
        self.requota()

    def requota(self) -> None:
        def quotas() -> tuple[QuotaView, ...]:
            return tuple(
                QuotaView(
                    FlavorId(str(n)),
                    self.pick.choice([0, 1000, 3000, 8000]),
                    self.pick.choice([None, 0, 500, 2000]),
                    self.pick.choice([None, None, 0, 1000]),
                )
                for n in range(len(FLAVORS))
                if self.pick.random() < 0.8
            )

        tenant = CohortId("tenant")
        self.queues = [QueueView(ProjectId(name), tenant, quotas=quotas()) for name in "abc"]
        self.queues.append(QueueView(OURS, tenant, quotas=quotas()))
        self.book = Book(cohorts=[CohortView(tenant, quotas=quotas())], queues=self.queues)
        for flavor, amount, _ in self.pods:
            self.book.charge(project=OURS, flavor=flavor, amount_milli=amount)

    def admit(self) -> None:
        """A pod, if the ledger lets it in and the hardware has such a thing left."""
        n = self.pick.randrange(len(FLAVORS))
        kind, model, profile = FLAVORS[n]
        on = self.pick.choice(self.hardware)
        fits = on.model == model and (on.mode is DeviceMode.WHOLE) == (kind != "mig")
        if kind == "mig":
            fits &= on.profile in ("", profile)
        if not fits or (kind == "share" and on.share_isolation != "none"):
            return
        count = 1 if kind == "share" else self.pick.randint(1, 3)
        amount = self.pick.choice([1, 250, 326, 999]) if kind == "share" else count * 1000
        flavor = FlavorId(str(n))
        if (self.book.available(project=OURS, flavor=flavor) or 0) < amount:
            return
        asked = replace(
            pod(kind, "none"), gpu_count=count, amount_milli=amount, profile=profile,
            share_replicas=on.share_replicas, gpu_resource=on.gpu_resource,
            share_resource=on.share_resource, mig_single=on.mig_single,
        )  # fmt: skip
        if self.asked(asked) <= self.there():
            self.pods.append((flavor, amount, asked))
            self.book.charge(project=OURS, flavor=flavor, amount_milli=amount)

    def end(self) -> None:
        if self.pods:
            flavor, amount, _ = self.pods.pop(self.pick.randrange(len(self.pods)))
            self.book.charge(project=OURS, flavor=flavor, amount_milli=-amount)

    def asked(self, *more: Pod) -> Counter[str]:
        """As the cluster counts it."""
        found: Counter[str] = Counter()
        for one in (*(held for *_, held in self.pods), *more):
            found.update(dict(pod_request(one).resources))
        return found

    def there(self) -> Counter[str]:
        """A device that is cut on demand holds seven slices of any profile at most."""
        found: Counter[str] = Counter()
        for one in self.hardware:
            if one.mode is DeviceMode.MIG_DYNAMIC:
                for profile in ("1g.10gb", "3g.40gb"):
                    found[f"nvidia.com/mig-{profile}"] += 7 * one.number
            elif one.mode is DeviceMode.WHOLE:
                shared = one.share_replicas > 1
                resource = one.share_resource if shared else one.gpu_resource
                found[resource] += one.number * one.share_replicas
            else:
                profile = one.gpu_resource if one.mig_single else f"nvidia.com/mig-{one.profile}"
                found[profile] += one.number
        return found

    def wall(self) -> Counter[str]:
        """As `confine` asks the rows for it."""
        own = {quota.flavor: quota for quota in self.queues[-1].quotas}
        of = []
        for n, (kind, model, profile) in enumerate(FLAVORS):
            flavor, quota = FlavorId(str(n)), own.get(FlavorId(str(n)))
            used = self.book.used(project=OURS, flavor=flavor)
            most: int | None = used
            if quota is not None:
                limit = quota.borrowing_limit_milli
                most = None if limit is None else max(quota.nominal_milli + limit, used)
            of.append(entitled(kind, most, profile=profile, model=model))
        return Counter(wall(*self.hardware, of=of))


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_it_is_never_below_what_the_ledger_let_in(seed: int) -> None:
    play = Play(Random(seed))
    for _ in range(60):
        play.pick.choice([play.admit] * 8 + [play.end, play.requota])()
        assert play.asked() <= play.wall(), (play.asked(), play.wall())


def test_that_play_reaches_the_wall_and_is_not_one_of_empty_clusters() -> None:
    touched = 0
    for seed in range(200):
        play = Play(Random(seed))
        for _ in range(60):
            play.admit()
        held, most = play.asked(), play.wall()
        touched += any(held[name] and held[name] == most[name] for name in held)
    assert touched > 50
