"""How far people have been told of what became of their work."""

from django.db import models


class Told(models.Model):
    """Of a reader of the events of workloads: it has looked at those whose ids are less than
    `until`."""

    reader = models.CharField(max_length=20, primary_key=True)
    until = models.UUIDField()

    def __str__(self) -> str:
        return f"{self.reader} until {self.until}"
