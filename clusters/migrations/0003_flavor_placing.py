from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0002_guards")]

    operations = [
        migrations.AddField(
            model_name="flavor",
            name="placing",
            field=models.CharField(
                choices=[("pack", "Pack"), ("spread", "Spread")],
                db_default="pack",
                default="pack",
                max_length=6,
            ),
        ),
        migrations.AddConstraint(
            model_name="flavor",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("placing", "pack"),
                    models.Q(("kind__in", ["whole", "cpu"]), ("placing", "spread")),
                    _connector="OR",
                ),
                name="flavor_spread_whole_or_cpu",
            ),
        ),
    ]
