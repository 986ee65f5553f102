"""The endpoint of what one is told by mail."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import StrictSerializer
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from tenants.models import OF_WORK
from tenants.services import mailing


class MailIn(StrictSerializer):
    mailed_of = serializers.ListField(
        child=serializers.ChoiceField(choices=OF_WORK), max_length=len(OF_WORK)
    )


class MailOut(serializers.Serializer[Any]):  # Any: plain rows
    mailed_of = serializers.ListField(child=serializers.ChoiceField(choices=OF_WORK))


class MailApi(ApiView):
    session_only = True

    @operation(
        "me_set_mail",
        tag="me",
        summary="Say of which events of your own work you are told by mail (session only)",
        takes=MailIn,
        answers={200: MailOut},
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> dict[str, list[str]]:
            events = self.body(MailIn)["mailed_of"]
            return {"mailed_of": mailing.be_told(actor=self.actor, of=events)}

        return self.once(make, status=200)
