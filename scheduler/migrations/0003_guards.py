"""Triggers for what a constraint can't say: what was decided, held and released stays so, and a
placement agrees with the rows it names."""

from django.db import migrations

EVENTS = """
CREATE TRIGGER event_append_only BEFORE UPDATE OR DELETE ON scheduler_workloadevent
    FOR EACH ROW EXECUTE FUNCTION berth_refuse_change();
"""

# A lease that is gone, or under another name, begins again at epoch 1.
LEASE = """
CREATE TRIGGER lease_epoch_never_falls BEFORE UPDATE ON scheduler_schedulerlease
    FOR EACH ROW WHEN (NEW.epoch < OLD.epoch OR NEW.shard <> OLD.shard)
    EXECUTE FUNCTION berth_refuse('an epoch never goes back');
CREATE TRIGGER lease_is_kept BEFORE DELETE ON scheduler_schedulerlease
    FOR EACH ROW EXECUTE FUNCTION berth_refuse('its epoch would be forgotten');
"""

# The states are core.lifecycle.TERMINAL.
WORKLOAD = """
CREATE TRIGGER workload_end_is_final BEFORE UPDATE OF state ON scheduler_workload
    FOR EACH ROW WHEN (OLD.state IN ('SUCCEEDED', 'FAILED', 'CANCELLED')
                       AND NEW.state <> OLD.state)
    EXECUTE FUNCTION berth_refuse('it has ended');
CREATE TRIGGER workload_version_grows BEFORE UPDATE OF state, version ON scheduler_workload
    FOR EACH ROW WHEN (NEW.version < OLD.version
                       OR (NEW.state <> OLD.state AND NEW.version = OLD.version))
    EXECUTE FUNCTION berth_refuse('a version never falls, and grows with the state');
CREATE TRIGGER pod_set_stays BEFORE UPDATE OF workload_id ON scheduler_podset
    FOR EACH ROW WHEN (NEW.workload_id <> OLD.workload_id)
    EXECUTE FUNCTION berth_refuse('a pod set stays with its workload');
CREATE TRIGGER attempt_stays BEFORE UPDATE OF workload_id, number, cluster_id, epoch
    ON scheduler_attempt
    FOR EACH ROW WHEN ((NEW.workload_id, NEW.number, NEW.cluster_id, NEW.epoch)
                       <> (OLD.workload_id, OLD.number, OLD.cluster_id, OLD.epoch))
    EXECUTE FUNCTION berth_refuse('what was decided stays');
"""

# P1, P3. What is held changes in one way only: it is released, once.
HELD = """
CREATE TRIGGER placement_stays BEFORE UPDATE OF workload_id, attempt_id, pod_set_id, rank, node_id,
        flavor_id, amount_milli, cpu_milli, memory_mib, pod_name ON scheduler_placement
    FOR EACH ROW WHEN (
        (NEW.workload_id, NEW.attempt_id, NEW.pod_set_id, NEW.rank, NEW.node_id, NEW.flavor_id,
         NEW.amount_milli, NEW.cpu_milli, NEW.memory_mib, NEW.pod_name) <>
        (OLD.workload_id, OLD.attempt_id, OLD.pod_set_id, OLD.rank, OLD.node_id, OLD.flavor_id,
         OLD.amount_milli, OLD.cpu_milli, OLD.memory_mib, OLD.pod_name))
    EXECUTE FUNCTION berth_refuse('what was placed stays');
CREATE TRIGGER placement_uid_stays BEFORE UPDATE OF pod_uid ON scheduler_placement
    FOR EACH ROW WHEN (OLD.pod_uid <> '' AND NEW.pod_uid <> OLD.pod_uid)
    EXECUTE FUNCTION berth_refuse('its pod is known by another uid');
CREATE TRIGGER placement_stays_released BEFORE UPDATE OF released_at ON scheduler_placement
    FOR EACH ROW WHEN (OLD.released_at IS NOT NULL AND NEW.released_at IS NULL)
    EXECUTE FUNCTION berth_refuse('what was released is not held again');
CREATE TRIGGER placement_held_is_kept BEFORE DELETE ON scheduler_placement
    FOR EACH ROW WHEN (OLD.released_at IS NULL)
    EXECUTE FUNCTION berth_refuse('it is held');
CREATE TRIGGER span_stays BEFORE UPDATE OF placement_id, device_id, span
    ON scheduler_placementspan
    FOR EACH ROW WHEN ((NEW.placement_id, NEW.device_id, NEW.span)
                       <> (OLD.placement_id, OLD.device_id, OLD.span))
    EXECUTE FUNCTION berth_refuse('what was placed stays');
CREATE TRIGGER span_stays_released BEFORE UPDATE OF released_at ON scheduler_placementspan
    FOR EACH ROW WHEN (OLD.released_at IS NOT NULL AND NEW.released_at IS NULL)
    EXECUTE FUNCTION berth_refuse('what was released is not held again');
CREATE TRIGGER span_held_is_kept BEFORE DELETE ON scheduler_placementspan
    FOR EACH ROW WHEN (OLD.released_at IS NULL)
    EXECUTE FUNCTION berth_refuse('it is held');
"""
HELD_UNDO = """
DROP TRIGGER span_held_is_kept ON scheduler_placementspan;
DROP TRIGGER span_stays_released ON scheduler_placementspan;
DROP TRIGGER span_stays ON scheduler_placementspan;
DROP TRIGGER placement_held_is_kept ON scheduler_placement;
DROP TRIGGER placement_stays_released ON scheduler_placement;
DROP TRIGGER placement_uid_stays ON scheduler_placement;
DROP TRIGGER placement_stays ON scheduler_placement;
"""

# One query for all rows of a statement. Its plan is kept, so it may not be one that suited tables
# which were small, or a statement which was large: lookups by key cost the same ever after.
_BY_KEY = "SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off"

PLACEMENT_FITS = f"""
CREATE FUNCTION berth_placement_fits() RETURNS trigger LANGUAGE plpgsql {_BY_KEY} AS $$
DECLARE
    wrong uuid;
    what text;
BEGIN
    SELECT m.id, CASE WHEN a.id IS NULL THEN 'its attempt is another workload''s'
                      WHEN s.id IS NULL THEN 'its pod set is another workload''s'
                      WHEN n.id IS NULL THEN 'its node is of another cluster'
                      ELSE 'its pod set does not accept its flavor' END
      INTO wrong, what FROM made m
      LEFT JOIN scheduler_attempt a ON a.id = m.attempt_id AND a.workload_id = m.workload_id
      LEFT JOIN scheduler_podset s ON s.id = m.pod_set_id AND s.workload_id = m.workload_id
      LEFT JOIN clusters_node n ON n.id = m.node_id AND n.cluster_id = a.cluster_id
      LEFT JOIN scheduler_podsetflavor f
             ON f.pod_set_id = m.pod_set_id AND f.flavor_id = m.flavor_id
     WHERE a.id IS NULL OR s.id IS NULL OR n.id IS NULL OR f.id IS NULL
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'placement %: %', wrong, what
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER placement_fits AFTER INSERT ON scheduler_placement
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION berth_placement_fits();
"""

# P1. The share lock keeps a placement from being released while a span is added to it.
SPAN_FITS = f"""
CREATE FUNCTION berth_span_fits() RETURNS trigger LANGUAGE plpgsql {_BY_KEY} AS $$
DECLARE
    wrong uuid;
    what text;
BEGIN
    PERFORM 1 FROM scheduler_placement
      WHERE id IN (SELECT placement_id FROM made) ORDER BY id FOR SHARE;
    SELECT m.id, CASE WHEN p.id IS NULL OR (p.released_at IS NULL) <> (m.released_at IS NULL)
                      THEN 'its placement is not there, or one of them is released'
                      WHEN d.id IS NULL OR d.node_id <> p.node_id
                      THEN 'its device is not of its placement''s node'
                      ELSE 'a MIG device has slices 0 to 7' END
      INTO wrong, what FROM made m
      LEFT JOIN scheduler_placement p ON p.id = m.placement_id
      LEFT JOIN clusters_device d ON d.id = m.device_id
     WHERE p.id IS NULL OR (p.released_at IS NULL) <> (m.released_at IS NULL)
        OR d.id IS NULL OR d.node_id <> p.node_id
        OR (d.mode <> 'whole' AND NOT m.span <@ int4range(0, 8))
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'span %: %', wrong, what
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER span_fits AFTER INSERT ON scheduler_placementspan
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION berth_span_fits();
"""

# P1. Looked at when the transaction ends, as the two tables change one after the other. Released
# rows are looked at too: asked for held ones only, the planner walks all that is held, each time.
TOGETHER = """
CREATE FUNCTION berth_placement_released() RETURNS trigger LANGUAGE plpgsql
    SET enable_seqscan = off AS $$
BEGIN
    PERFORM berth_need_read_committed();
    IF (SELECT bool_or(released_at IS NULL) FROM scheduler_placementspan
         WHERE placement_id = NEW.id) THEN
        RAISE EXCEPTION 'placement % is released, and a span of it is not', NEW.id
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER placement_released_with_spans
    AFTER UPDATE OF released_at ON scheduler_placement DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.released_at IS NULL AND NEW.released_at IS NOT NULL)
    EXECUTE FUNCTION berth_placement_released();
CREATE FUNCTION berth_span_released() RETURNS trigger LANGUAGE plpgsql
    SET enable_seqscan = off AS $$
BEGIN
    IF (SELECT released_at IS NULL FROM scheduler_placement WHERE id = NEW.placement_id) THEN
        RAISE EXCEPTION 'span % is released, and its placement is not', NEW.id
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER span_released_with_placement
    AFTER UPDATE OF released_at ON scheduler_placementspan DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.released_at IS NULL AND NEW.released_at IS NOT NULL)
    EXECUTE FUNCTION berth_span_released();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0002_initial"),
        ("audit", "0002_append_only"),
        ("clusters", "0002_guards"),
    ]
    operations = [
        migrations.RunSQL(EVENTS, "DROP TRIGGER event_append_only ON scheduler_workloadevent;"),
        migrations.RunSQL(
            LEASE,
            "DROP TRIGGER lease_is_kept ON scheduler_schedulerlease;"
            "DROP TRIGGER lease_epoch_never_falls ON scheduler_schedulerlease;",
        ),
        migrations.RunSQL(
            WORKLOAD,
            "DROP TRIGGER attempt_stays ON scheduler_attempt;"
            "DROP TRIGGER pod_set_stays ON scheduler_podset;"
            "DROP TRIGGER workload_version_grows ON scheduler_workload;"
            "DROP TRIGGER workload_end_is_final ON scheduler_workload;",
        ),
        migrations.RunSQL(HELD, HELD_UNDO),
        migrations.RunSQL(
            PLACEMENT_FITS,
            "DROP TRIGGER placement_fits ON scheduler_placement;"
            "DROP FUNCTION berth_placement_fits();",
        ),
        migrations.RunSQL(
            SPAN_FITS,
            "DROP TRIGGER span_fits ON scheduler_placementspan; DROP FUNCTION berth_span_fits();",
        ),
        migrations.RunSQL(
            TOGETHER,
            "DROP TRIGGER span_released_with_placement ON scheduler_placementspan;"
            "DROP TRIGGER placement_released_with_spans ON scheduler_placement;"
            "DROP FUNCTION berth_span_released(); DROP FUNCTION berth_placement_released();",
        ),
    ]
