from django.db import migrations, models


class Migration(migrations.Migration):
    """What another cluster has, or had, is looked for by its uuid."""

    dependencies = [("clusters", "0026_capacity")]

    operations = [
        migrations.AddIndex(
            model_name="device",
            index=models.Index(
                condition=models.Q(("uuid", ""), _negated=True),
                fields=["uuid"],
                name="device_by_uuid",
            ),
        ),
    ]
