"""Projects that are there accept what they were given so far; new ones accept no shares."""

from django.db import migrations, models

CHOICES = [("none", "None"), ("memory", "Memory"), ("hardware", "Hardware")]


def isolation(default: str) -> "models.CharField[str, str]":
    return models.CharField(choices=CHOICES, db_default=default, default=default, max_length=8)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0019_standing_gate")]

    operations = [
        migrations.AddField("project", "least_isolation", isolation("none")),
        migrations.AlterField("project", "least_isolation", isolation("hardware")),
        migrations.AddConstraint(
            "project",
            models.CheckConstraint(
                condition=models.Q(("least_isolation__in", ["none", "memory", "hardware"])),
                name="project_isolation_known",
            ),
        ),
    ]
