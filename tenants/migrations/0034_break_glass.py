from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0033_shared_cache'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='is_break_glass',
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddConstraint(
            model_name='user',
            constraint=models.UniqueConstraint(condition=models.Q(('is_break_glass', True)), fields=('is_break_glass',), name='user_one_break_glass'),
        ),
    ]
