from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ('tenants', '0043_token_revoked_by'),
    ]

    operations = [
        migrations.AddField(
            model_name='budget',
            name='used_up_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name='budget',
            name='mode',
            field=models.CharField(choices=[('warn', 'Warn'), ('soft', 'Soft'), ('safe', 'Safe'), ('hard', 'Hard')], max_length=4),
        ),
        migrations.RemoveConstraint(
            model_name='budget',
            name='budget_mode_known',
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.CheckConstraint(condition=models.Q(('mode__in', ['warn', 'soft', 'safe', 'hard'])), name='budget_mode_known'),
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.CheckConstraint(condition=models.Q(('used_up_at__isnull', True), ('mode', 'hard'), _connector='OR'), name='budget_used_up_where_hard'),
        ),
    ]
