"""What becomes of who waits in vain (ADR 0040)."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0022_room_for_updates'),
    ]

    operations = [
        migrations.AddField(
            model_name='dependency',
            name='on_unmet',
            field=models.CharField(choices=[('cancel', 'Cancel'), ('hold', 'Hold')], db_default='cancel', default='cancel', max_length=6),
        ),
        migrations.AddField(
            model_name='dependency',
            name='unmet_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name='dependency',
            constraint=models.CheckConstraint(condition=models.Q(('on_unmet__in', ['cancel', 'hold'])), name='dependency_on_unmet_known'),
        ),
        migrations.AddConstraint(
            model_name='dependency',
            constraint=models.CheckConstraint(condition=models.Q(('unmet_at__isnull', True), ('on_unmet', 'hold'), _connector='OR'), name='dependency_unmet_holds'),
        ),
    ]
