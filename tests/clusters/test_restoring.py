"""A database that was put back is another one than that in which its clusters were heard."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from clusters.models import Cluster, ClusterState
from clusters.services import clusters, restoring
from controlplane.audit.models import AuditEvent
from tests import factories
from tests.factories import AT


def heard() -> Cluster:
    cluster = factories.cluster()
    assert clusters.heard(cluster=cluster, listing=restoring.begin(cluster=cluster))
    return cluster


def put_back() -> None:
    """The same rows in another file, where `pg_restore` and COPY put them too."""
    with connection.cursor() as cursor:
        cursor.execute("CLUSTER clusters_cluster USING clusters_cluster_pkey")


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
