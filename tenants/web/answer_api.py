"""The endpoint that answers several requests for quota at once."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Id, Integer, StrictSerializer, Text
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from scheduler.selectors import guarantees
from tenants.services import answers
from tenants.services.answers import Chosen
from tenants.services.requests import MAX_TEXT, Seen


class ChosenIn(StrictSerializer):
    """A request and what of it you have seen; at another version or step nothing is done to it."""

    id = Id()
    version = Integer(low=1)
    quota_version = Integer(help_text="Of the quota; 0 for none.")
    step = Integer(low=1, required=False, default=1, help_text="Which of its steps, from 1.")


class DecideIn(StrictSerializer):
    answer = serializers.ChoiceField(choices=["grant", "deny"])
    note = Text(
        max_length=MAX_TEXT, lines=True, required=False, default="", allow_blank=True,
        help_text="For each of them; needed to deny.",
    )  # fmt: skip
    requests = serializers.ListField(child=ChosenIn(), allow_empty=False, max_length=answers.MOST)


class AnswerOut(serializers.Serializer[Any]):  # Any: rows
    """What came of one; `code` and `detail` say why it was refused, and are empty else."""

    id = serializers.UUIDField()
    outcome = serializers.ChoiceField(choices=["granted", "agreed", "denied", "refused"])
    code = serializers.CharField(source="refusal.code", default="")
    detail = serializers.CharField(source="refusal.message", default="")


class AnswersOut(serializers.Serializer[Any]):  # Any: rows
    items = AnswerOut(many=True)
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="Where more is guaranteed now than there is."
    )


class DecideApi(ApiView):
    session_only = True

    @operation(
        "quota_requests_decide",
        tag="quota requests",
        summary="Grant as asked, or deny, several requests, each for itself (approvers, session"
        " only)",
        takes=DecideIn,
        answers={200: AnswersOut},
    )
    def post(self, request: Request) -> Response:
        # No Idempotency-Key: one transaction of all would hold the rows of all. What was decided
        # by a first try is refused to a second one, by its version.
        body = self.body(DecideIn)
        chosen = [
            Chosen(
                each["id"],
                Seen(request=each["version"], quota=each["quota_version"], step=each["step"]),
            )
            for each in body["requests"]
        ]
        say = answers.deny if body["answer"] == "deny" else answers.grant
        found = say(actor=self.actor, chosen=chosen, note=body["note"], at=self.at)
        granted = answers.granted(found)
        warned = guarantees.warnings_of_all([(of.flavor, of.project) for of in granted])
        return Response(AnswersOut({"items": found, "warnings": warned}).data)
