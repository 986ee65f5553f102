"""Checks what was there before, beside the work that goes on."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0047_any_order")]
    operations = [ValidateConstraint("podset", "pod_set_any_order_of_named")]
