"""A database that was put back is another one than that in which its clusters were heard."""

from importlib import import_module
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models import Value
from django.db.models.functions import Replace

from clusters.models import Cluster, ClusterState, Imprint
from clusters.services import clusters, restoring
from controlplane.audit.models import AuditEvent
from tests import factories
from tests.factories import AT


def heard() -> Cluster:
    cluster = factories.cluster()
    assert clusters.heard(cluster=cluster, listing=restoring.begin(cluster=cluster))
    return cluster


def put_back() -> None:
    """The same rows written by another transaction, as `pg_restore` and COPY do it."""
    with transaction.atomic():
        assert Imprint.objects.all().delete()[0] == 1
        Imprint.objects.create(id=1)


def promoted() -> None:
    """A standby took over: on the next timeline, as all that is stored has it."""
    Cluster.objects.update(heard_in=Replace("heard_in", Value("/00000001/"), Value("/00000000/")))


@pytest.mark.django_db
def test_a_cluster_that_was_heard_here_stays_as_it_is() -> None:
    cluster = heard()
    restoring.notice()
    cluster.refresh_from_db()
    assert cluster.state == ClusterState.ACTIVE
    assert not restoring.any_unread()


@pytest.mark.django_db
def test_put_back_none_counts_as_heard_until_it_is() -> None:
    cluster = heard()
    put_back()
    restoring.notice()
    cluster.refresh_from_db()
    assert cluster.state == ClusterState.NEW
    assert cluster.restored_at is not None
    assert restoring.any_unread()
    since = cluster.restored_at
    restoring.notice()
    cluster.refresh_from_db()
    assert cluster.restored_at == since

    listing = restoring.begin(cluster=cluster)
    assert listing.restored_at == since
    assert clusters.heard(cluster=cluster, listing=listing)
    cluster.refresh_from_db()
    assert cluster.state == ClusterState.ACTIVE
    assert not Cluster.objects.exclude(restored_at=None).exists()
    assert not restoring.any_unread()


@pytest.mark.django_db
def test_lists_that_went_into_the_database_before_say_nothing_of_this_one() -> None:
    cluster = heard()
    before = restoring.begin(cluster=cluster)
    put_back()
    restoring.notice()
    assert not clusters.heard(cluster=cluster, listing=before)
    cluster.refresh_from_db()
    assert cluster.state == ClusterState.NEW


@pytest.mark.django_db
def test_one_of_which_nobody_noted_that_is_left_alone() -> None:
    """As an earlier version wrote it."""
    cluster = factories.cluster()
    put_back()
    restoring.notice()
    cluster.refresh_from_db()
    assert cluster.restored_at is None


@pytest.mark.django_db
def test_somebody_may_say_that_the_others_go_on_without_one() -> None:
    cluster = heard()
    assert not restoring.go_on_without(
        cluster=cluster, actor="user:olga", actor_name="olga", at=AT
    )
    put_back()
    restoring.notice()
    assert restoring.go_on_without(cluster=cluster, actor="user:olga", actor_name="olga", at=AT)
    assert not restoring.any_unread()
    cluster.refresh_from_db()
    assert cluster.state == ClusterState.LOST
    assert cluster.restored_at is not None  # dispatch leaves it alone
    restoring.notice()
    assert not restoring.any_unread()
    assert AuditEvent.objects.get(action="cluster.go-on-without").actor_name == "olga"


@pytest.mark.django_db
def test_the_command_says_it_of_a_cluster_that_is_waited_for() -> None:
    with pytest.raises(CommandError, match="There is no cluster 'south'"):
        call_command("go_on_without", "south")
    heard()
    with pytest.raises(CommandError, match="Nothing waits for north"):
        call_command("go_on_without", "north")
    put_back()
    restoring.notice()
    call_command("go_on_without", "north", stdout=StringIO())
    assert not restoring.any_unread()


@pytest.mark.django_db
def test_a_cluster_is_looked_at_again_where_nothing_shows_that_it_was_put_back() -> None:
    """Neither may a watch that goes on meanwhile say that it was."""
    cluster = heard()
    goes_on = restoring.begin(cluster=cluster)
    assert goes_on.restored_at is None
    call_command("look_again", "north", stdout=StringIO())
    cluster.refresh_from_db()
    assert (cluster.state, restoring.any_unread()) == (ClusterState.NEW, True)
    assert not clusters.heard(cluster=cluster, listing=goes_on)
    assert clusters.heard(cluster=cluster, listing=restoring.begin(cluster=cluster))
    assert clusters.heard(cluster=cluster, listing=goes_on)  # nobody has said it again
    assert not restoring.any_unread()
    assert AuditEvent.objects.get(action="cluster.look-again").before == {"state": "active"}


@pytest.mark.django_db
def test_all_are_looked_at_again_or_those_named() -> None:
    heard()
    for wrong in ([], ["north", "--all"]):
        with pytest.raises(CommandError, match="Name the clusters, or say --all"):
            call_command("look_again", *wrong)
    with pytest.raises(CommandError, match="There is no cluster 'south'"):
        call_command("look_again", "north", "south")
    assert not restoring.any_unread()
    call_command("look_again", "--all", stdout=StringIO())
    assert restoring.any_unread()


def lost(name: str = "south") -> Cluster:
    """Heard here long ago, beside one that was heard just now."""
    cluster = factories.cluster(name)
    assert clusters.heard(cluster=cluster)
    Cluster.objects.filter(id=cluster.id).update(state="lost", seen_at=AT)
    return cluster


@pytest.mark.django_db
def test_what_routine_work_rewrites_is_not_taken_for_put_back() -> None:
    """As VACUUM FULL does, which no transaction may."""
    heard()
    with connection.cursor() as cursor:
        for table in ("clusters_cluster", "clusters_imprint"):
            cursor.execute(f"CLUSTER {table} USING {table}_pkey")
    restoring.notice()
    assert not restoring.any_unread()


@pytest.mark.django_db
def test_a_plain_role_may_ask_which_database_it_is() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {restoring.HERE}")
        here = cursor.fetchone()
        cursor.execute("CREATE ROLE plain NOLOGIN NOSUPERUSER")
        cursor.execute("GRANT USAGE ON SCHEMA public TO plain")
        cursor.execute("GRANT SELECT ON clusters_imprint TO plain")
        cursor.execute("SET LOCAL ROLE plain")
        cursor.execute(f"SELECT {restoring.HERE}")
        assert cursor.fetchone() == here
        cursor.execute("RESET ROLE")
        cursor.execute("DROP OWNED BY plain")
        cursor.execute("DROP ROLE plain")


@pytest.mark.django_db
def test_a_standby_that_takes_over_waits_for_no_cluster_that_was_lost_before() -> None:
    heard()
    dead = lost()
    promoted()
    restoring.notice()
    restoring.notice()
    states = dict(Cluster.objects.values_list("name", "state"))
    assert states == {"north": "new", "south": "lost"}
    assert not Cluster.objects.filter(restored_at=None).exists()  # dispatch leaves both alone
    assert clusters.heard(cluster=Cluster.objects.get(name="north"))
    restoring.notice()
    assert not restoring.any_unread()
    put_back()
    restoring.notice()
    dead.refresh_from_db()
    assert dead.state == "new"


@pytest.mark.django_db
@pytest.mark.parametrize("how", ["from a dump", "an hour ago"])
def test_one_that_was_lost_then_is_waited_for_where_the_database_is_old(how: str) -> None:
    """It may have been heard again since."""
    heard()
    lost()
    promoted()
    if how == "from a dump":
        put_back()
    else:
        Cluster.objects.filter(name="north").update(seen_at=AT)
    restoring.notice()
    assert set(Cluster.objects.values_list("state", flat=True)) == {"new"}


@pytest.mark.django_db
def test_the_word_that_one_is_gone_does_not_outlive_the_database_of_which_it_was_said() -> None:
    """Dumped while it was given up, put back when it is long heard again."""
    cluster = heard()
    put_back()
    restoring.notice()
    assert restoring.go_on_without(cluster=cluster, actor="user:olga", actor_name="olga", at=AT)
    put_back()
    restoring.notice()
    assert restoring.any_unread()


@pytest.mark.django_db
def test_what_an_earlier_version_heard_in_this_database_stays_heard() -> None:
    """And not what it heard in another."""
    move = import_module("clusters.migrations.0024_imprint_of_before")
    here, elsewhere = factories.cluster(), factories.cluster("south")
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE clusters_cluster SET heard_in = ({move.BEFORE}) WHERE id = %s", [here.id]
        )
        Cluster.objects.filter(id=elsewhere.id).update(heard_in="1/1/base/1/1")
        cursor.execute(move.Migration.operations[1].sql)
    restoring.notice()
    assert list(Cluster.objects.exclude(restored_at=None)) == [elsewhere]
