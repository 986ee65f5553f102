"""Past use, derived again from the usage intervals."""

from scheduler.selectors.fleet import Row, rows

_DIFFERING = """
SELECT coalesce(p.day, u.day), p.milli_s, u.milli_s FROM tenants_pastuse p FULL JOIN (
    SELECT (lower(during) AT TIME ZONE 'UTC')::date AS day, project_id, flavor_id,
           sum(amount_milli * (floor(extract(epoch FROM upper(during)))
                               - floor(extract(epoch FROM lower(during))))) AS milli_s
    FROM tenants_usageinterval GROUP BY 1, 2, 3
) u USING (day, project_id, flavor_id)
WHERE p.milli_s IS DISTINCT FROM u.milli_s AND (p.milli_s, u.milli_s) IS DISTINCT FROM (NULL, 0)
"""


def differing() -> list[Row]:
    """(day, as it is kept, as it is derived) where the two are not the same; [] is right."""
    return rows(_DIFFERING)
