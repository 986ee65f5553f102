import django.contrib.auth.validators
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0029_delegates_and_time_outs'),
    ]

    operations = [
        migrations.AlterField(
            model_name='user',
            name='username',
            field=models.CharField(error_messages={'unique': 'There is a user of that name already.'}, help_text='Up to 150 of A-Z, a-z, 0-9 and @ . + - _', max_length=150, unique=True, validators=[django.contrib.auth.validators.ASCIIUsernameValidator()]),
        ),
        migrations.AddConstraint(
            model_name='user',
            constraint=models.CheckConstraint(condition=models.Q(('username__regex', '^[A-Za-z0-9_.@+:-]+$')), name='user_name_ascii', violation_error_message='A username has only A-Z, a-z, 0-9 and @ . + - _'),
        ),
        migrations.AddConstraint(
            model_name='user',
            constraint=models.UniqueConstraint(models.Func(django.db.models.functions.text.Lower(models.F('username')), models.Value('01i_-'), models.Value('oll'), function='translate'), name='user_name_reads_once', violation_error_message='It reads like the name of another user: take another.'),
        ),
    ]
