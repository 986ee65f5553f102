"""`rn` in a username reads like `m`, in the index as in `tenants.naming`."""

from typing import Any

import django.db.models.functions.text
from django.db import migrations, models

_ALIKE = """
SELECT string_agg(username, ', ' ORDER BY username)
FROM tenants_user
GROUP BY replace(translate(lower(username), '01i_-', 'oll'), 'rn', 'm')
HAVING count(*) > 1
ORDER BY 1
"""


def refuse_alike(apps: Any, schema_editor: Any) -> None:  # Any: as Django calls it
    """Nobody is renamed: people sign in by their names."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_ALIKE)
        if found := [names for (names,) in cursor.fetchall()]:
            raise RuntimeError(
                "These usernames read alike, which none may from this release on: "
                f"{'; '.join(found)}. Nothing was changed. Give all but one of each another name "
                "(in the back office under Users; a service account's in the database), and "
                "migrate again."
            )


class Migration(migrations.Migration):
    dependencies = [("tenants", "0054_answered_requests")]

    operations = [
        migrations.RunPython(refuse_alike, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="user", name="user_name_reads_once"),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.UniqueConstraint(
                django.db.models.functions.text.Replace(
                    models.Func(
                        django.db.models.functions.text.Lower(models.F("username")),
                        models.Value("01i_-"),
                        models.Value("oll"),
                        function="translate",
                    ),
                    models.Value("rn"),
                    models.Value("m"),
                ),
                name="user_name_reads_once",
                violation_error_message="It reads like the name of another user: take another.",
            ),
        ),
    ]
