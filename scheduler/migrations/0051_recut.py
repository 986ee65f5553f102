"""Recuts of nodes, and what keeps them and placements apart: nothing is placed on a node that is
being cut anew, and none is cut while a device of it is held."""

import controlplane.kernel.ids
import django.db.models.deletion
from django.db import migrations, models

_BY_KEY = "SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off"

# Who places takes the node's key in share, who begins a recut takes it alone: of two at the same
# moment, the later sees what the earlier did. The states are those of models.recut.BEGUN.
NOT_PLACED = f"""
CREATE FUNCTION berth_not_recut() RETURNS trigger LANGUAGE plpgsql {_BY_KEY} AS $$
DECLARE
    wrong uuid;
BEGIN
    PERFORM berth_need_read_committed();
    PERFORM 1 FROM clusters_node
      WHERE id IN (SELECT node_id FROM made WHERE released_at IS NULL) ORDER BY id FOR KEY SHARE;
    SELECT r.node_id INTO wrong FROM scheduler_recut r
     WHERE r.node_id IN (SELECT node_id FROM made WHERE released_at IS NULL)
       AND r.ended_at IS NULL AND r.state <> 'planned'
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'node % is being cut anew', wrong
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER placement_not_while_recut AFTER INSERT ON scheduler_placement
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION berth_not_recut();
"""
NOT_HELD = """
CREATE FUNCTION berth_recut_not_held() RETURNS trigger LANGUAGE plpgsql
    SET enable_seqscan = off AS $$
BEGIN
    PERFORM berth_need_read_committed();
    PERFORM 1 FROM clusters_node WHERE id = NEW.node_id FOR UPDATE;
    IF NEW.state NOT IN ('cordoning', 'emptying') AND EXISTS (
        SELECT FROM clusters_device d JOIN scheduler_placementspan s ON s.device_id = d.id
         WHERE d.node_id = NEW.node_id AND s.released_at IS NULL) THEN
        RAISE EXCEPTION 'a device of node % is held', NEW.node_id
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER recut_of_none_held BEFORE INSERT OR UPDATE OF state ON scheduler_recut
    FOR EACH ROW WHEN (NEW.state IN ('cordoning', 'emptying', 'cutting', 'checking',
                                     'rolling-back'))
    EXECUTE FUNCTION berth_recut_not_held();
"""
UNDO_PLACED = """
DROP TRIGGER placement_not_while_recut ON scheduler_placement;
DROP FUNCTION berth_not_recut();
"""
UNDO_HELD = """
DROP TRIGGER recut_of_none_held ON scheduler_recut;
DROP FUNCTION berth_recut_not_held();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0011_cluster_credential"),
        ("scheduler", "0050_caught"),
    ]

    operations = [
        migrations.CreateModel(
            name="Recut",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=controlplane.kernel.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("node_uid", models.CharField(blank=True, max_length=253)),
                ("wanted", models.JSONField()),
                ("before", models.JSONField()),
                ("config", models.CharField(max_length=63)),
                ("config_before", models.CharField(blank=True, max_length=63)),
                (
                    "mode",
                    models.CharField(
                        choices=[("wait", "Wait"), ("preempt", "Preempt")], max_length=7
                    ),
                ),
                ("planned_by", models.CharField(max_length=150)),
                ("planned_at", models.DateTimeField()),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("planned", "Planned"),
                            ("cordoning", "Cordoning"),
                            ("emptying", "Emptying"),
                            ("cutting", "Cutting"),
                            ("checking", "Checking"),
                            ("rolling-back", "Rolling Back"),
                            ("opening", "Opening"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("called-off", "Called Off"),
                        ],
                        default="planned",
                        max_length=12,
                    ),
                ),
                ("since", models.DateTimeField()),
                ("told_at", models.DateTimeField(blank=True, null=True)),
                ("outcome", models.CharField(blank=True, max_length=10)),
                ("trouble", models.CharField(blank=True, max_length=500)),
                ("stuck", models.BooleanField(default=False)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "node",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="recuts",
                        to="clusters.node",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("node",),
                        name="recut_one_live_a_node",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "planned",
                                    "cordoning",
                                    "emptying",
                                    "cutting",
                                    "checking",
                                    "rolling-back",
                                    "opening",
                                    "done",
                                    "failed",
                                    "called-off",
                                ],
                            )
                        ),
                        name="recut_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("mode__in", ["wait", "preempt"])),
                        name="recut_mode_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("outcome__in", ["", "done", "failed", "called-off"])),
                        name="recut_outcome_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("ended_at__isnull", False),
                                ("state__in", ("done", "failed", "called-off")),
                            ),
                            models.Q(
                                ("ended_at__isnull", True),
                                models.Q(
                                    ("state__in", ("done", "failed", "called-off")), _negated=True
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="recut_ended_in_its_last_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("stuck", False), ("state", "failed"), _connector="OR"),
                        name="recut_stuck_has_failed",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("ends_at__gt", models.F("starts_at"))),
                        name="recut_window",
                    ),
                ],
            },
        ),
        migrations.RunSQL(NOT_PLACED, UNDO_PLACED),
        migrations.RunSQL(NOT_HELD, UNDO_HELD),
    ]
