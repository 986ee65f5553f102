"""Everybody at once: submissions, cycles, charges, grants and edits of quotas. Whatever they come
to, no use ever grows past its quota.

BERTH_STORM_ROUNDS says how often each acts (nightly: 1,000), BERTH_STORM_SEED what they do.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError

import pytest
from django.db import IntegrityError, connection, transaction

from clusters.models import Flavor
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, Invalid
from scheduler.core.lifecycle import State
from scheduler.loop import run
from scheduler.loop.checking import invariants, rules
from scheduler.models import Workload
from scheduler.selectors import fleet
from scheduler.services import workloads
from tenants.access import actor_for
from tenants.models import Member, Project, Quota, QuotaRequest, Role, User
from tenants.services import asking_bounds, quotas, requests, usage
from tenants.services.grants import Allotment
from tests import factories
from tests.flows.world import spec
from tests.scheduler.stage import Stage, build
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = int(os.environ.get("BERTH_STORM_ROUNDS", "4"))
SEED = int(os.environ.get("BERTH_STORM_SEED", "7"))
THREADS = 64
BACKLOG = 200
"""That goes on waiting from round to round, lest the thousandth costs what all before it left."""
_GROWN = """
CREATE TABLE storm_grown AS
    SELECT id, used_milli, nominal_milli, borrowing_limit_milli FROM tenants_quota WITH NO DATA;
CREATE FUNCTION storm_grew() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO storm_grown VALUES
        (NEW.id, NEW.used_milli, NEW.nominal_milli, NEW.borrowing_limit_milli);
    RETURN NULL; END $$;
CREATE TRIGGER storm_grew AFTER UPDATE ON tenants_quota FOR EACH ROW
    WHEN (NEW.used_milli > OLD.used_milli) EXECUTE FUNCTION storm_grew();
"""
_DROP = (
    "DROP TRIGGER storm_grew ON tenants_quota; DROP FUNCTION storm_grew; DROP TABLE storm_grown"
)
_PAST = """
SELECT used_milli, nominal_milli + borrowing_limit_milli FROM storm_grown
WHERE used_milli > nominal_milli + borrowing_limit_milli
"""

type Act = Callable[[random.Random], None]


@pytest.fixture
def grown(transactional_db: None) -> Iterator[None]:
    """Each use that grew is written down with what its quota was at that moment."""
    with connection.cursor() as cursor:
        cursor.execute(_GROWN)
    yield
    with connection.cursor() as cursor:
        cursor.execute(_DROP)


class Storm:
    """Two projects of a tenant, and who acts in them."""

    def __init__(self) -> None:
        self.stage: Stage = build()
        other = factories.project(self.stage.project.tenant, "Other")
        factories.quota(other, self.stage.flavor, 4000, borrowing_limit_milli=2000)
        Quota.objects.update(nominal_milli=4000, borrowing_limit_milli=2000)
        self.projects: list[Project] = [self.stage.project, other]
        self.people = {
            name: self._person(name, role)
            for name, role in (("oz", Role.OPERATOR), ("pia", Role.APPROVER))
        }
        self.done: Counter[str] = Counter()
        self.acts: dict[str, tuple[int, Act]] = {
            "submit": (20, self.submit),
            "grant": (16, self.grant),
            "set": (8, self.set_quota),
            "charge": (12, self.charge),
            "cancel": (4, self.cancel),
            "cycle": (4, self.cycle),
        }

    def _person(self, name: str, role: Role) -> User:
        user = factories.user(name)
        Member.objects.create(user=user, role=role)
        return user

    @property
    def flavor(self) -> Flavor:
        return self.stage.flavor

    def submit(self, dice: random.Random) -> None:
        of = spec(self.flavor.name, gpus=dice.randint(1, 2))
        workloads.submit(
            actor=self.stage.actor, project=dice.choice(self.projects), specs=[of], at=clock.now()
        )

    def grant(self, dice: random.Random) -> None:
        project = dice.choice(self.projects)
        allotment = Allotment(nominal_milli=1000 * dice.randint(1, 8))
        asked = requests.open(
            actor=self.stage.actor,
            project=project,
            flavor=self.flavor,
            allotment=allotment,
            reason="More.",
            at=clock.now(),
        )
        try:
            requests.grant(actor=actor_for(user=self.people["pia"]), request=asked, at=clock.now())
        except (Conflict, Invalid):  # else soon nobody could ask any more
            requests.withdraw(actor=self.stage.actor, request=asked, at=clock.now())
            raise

    def set_quota(self, dice: random.Random) -> None:
        quotas.set_quota(
            actor=actor_for(user=self.people["oz"]),
            project=dice.choice(self.projects),
            flavor=self.flavor,
            amounts=quotas.Amounts(
                nominal_milli=1000 * dice.randint(1, 4),
                borrowing_limit_milli=1000 * dice.randint(0, 3),
                lending_limit_milli=None,
            ),
            version=None,
            at=clock.now(),
        )

    def charge(self, dice: random.Random) -> None:
        """As an applier that planned for what is no more: what the walls let through is given back
        before the round is over."""
        amounts = {(dice.choice(self.projects).id, self.flavor.id): 1000 * dice.randint(1, 4)}
        with transaction.atomic():
            usage.lock(amounts)
            usage.add(amounts)
        with transaction.atomic():
            usage.lock(amounts)
            usage.add({key: -amount for key, amount in amounts.items()})

    def cancel(self, dice: random.Random) -> None:
        waiting = Workload.objects.filter(state=State.PENDING).order_by("?").first()
        if waiting is not None:
            workloads.cancel(actor=self.stage.actor, workload=waiting, at=clock.now())

    def cycle(self, dice: random.Random) -> None:
        run.run_cycle(at=clock.now())

    def blow(self, *, rounds: int, seed: int) -> None:
        """Each of THREADS acts once a round, all at the same moment. What is refused is counted by
        its name; nothing but a refusal may come of it."""
        names = [name for name, (many, _) in self.acts.items() for _ in range(many)]
        assert len(names) == THREADS
        start = Barrier(THREADS, action=self.between, timeout=PATIENCE_S)

        def one(nth: int) -> Counter[str]:
            dice, found = random.Random(seed * THREADS + nth), Counter[str]()
            try:
                for turn in range(rounds):
                    name = names[(nth + turn) % THREADS]
                    start.wait()
                    try:
                        self.acts[name][1](dice)
                        found[name] += 1
                    except (Conflict, Invalid, IntegrityError) as refusal:
                        found[f"{name}: {type(refusal).__name__}"] += 1
            except BaseException:
                start.abort()
                raise
            finally:
                connection.close()
            return found

        with ThreadPoolExecutor(THREADS) as threads:
            ended = [threads.submit(one, nth) for nth in range(THREADS)]
        # Who was left waiting for somebody that broke has nothing to tell.
        for broken in filter(None, (future.exception() for future in ended)):
            if not isinstance(broken, BrokenBarrierError):
                raise broken
        for future in ended:
            self.done += future.result()

    def between(self) -> None:
        """What has started ends, so that there is room again, and so does what is more than a
        backlog. In the thread that came last."""
        started = Workload.objects.filter(state__in=[State.ADMITTED, State.BOUND])
        waiting = Workload.objects.filter(state=State.PENDING).order_by("id")
        for work in [*started, *waiting[BACKLOG:]]:
            workloads.cancel(actor=self.stage.actor, workload=work, at=clock.now())
        self.stage.release_claims()
        self.stage.dispatch(at=clock.now())
        self.stage.port.pods.clear()
        self.stage.relist(at=clock.now())


def test_no_use_grows_past_its_quota_whoever_acts_at_once(
    grown: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_bounds, "MOST", 10**6)
    storm = Storm()
    storm.blow(rounds=ROUNDS, seed=SEED)
    print(dict(sorted(storm.done.items())))
    assert fleet.rows(_PAST) == []
    [(count,)] = fleet.rows("SELECT count(*) FROM storm_grown")
    assert count > ROUNDS
    assert rules.told(invariants.violations()) == []
    assert storm.done["cycle"] == storm.acts["cycle"][0] * ROUNDS
    assert storm.done["submit"] > 0
    assert QuotaRequest.objects.filter(decision="granted").count() == storm.done["grant"] > 0


@pytest.fixture
def no_walls(grown: None) -> Iterator[None]:
    """The triggers of the quotas are off, but for that which writes down."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tenants_quota DISABLE TRIGGER USER")
        cursor.execute("ALTER TABLE tenants_quota ENABLE TRIGGER storm_grew")
    yield
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tenants_quota ENABLE TRIGGER USER")


@pytest.mark.usefixtures("no_walls")
def test_without_the_walls_it_would() -> None:
    storm = Storm()
    storm.acts = {"charge": (THREADS, storm.charge)}
    storm.blow(rounds=1, seed=SEED)
    assert fleet.rows(_PAST)
