"""Endpoints of channels: where others are told what happens in the fleet, a tenant or project."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import StrictSerializer
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from tenants import access
from tenants.access import Action, Place
from tenants.models import TOLD, ChannelKind
from tenants.selectors import channels as selectors
from tenants.services import channels

KINDS = [kind.value for kind in ChannelKind]


class ChannelIn(StrictSerializer):
    name = serializers.CharField(max_length=60)
    kind = serializers.ChoiceField(
        choices=KINDS, help_text="json is signed; slack is what takes {text}."
    )
    url = serializers.CharField(
        max_length=1000, help_text="https, to a public address. It is not told again."
    )
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=TOLD), min_length=1, max_length=len(TOLD)
    )


class ChannelOut(serializers.Serializer[Any]):  # Any: rows
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=KINDS)
    host = serializers.CharField(help_text="Of its address, which is not told.")
    events = serializers.ListField(child=serializers.CharField())
    made_at = serializers.DateTimeField()


class ChannelStandingOut(ChannelOut):
    sent_count = serializers.IntegerField()
    waiting_count = serializers.IntegerField(help_text="Sent again and again, for an hour.")
    failed_count = serializers.IntegerField(help_text="Given up.")
    failing_since = serializers.DateTimeField(
        allow_null=True, help_text="null where the last try went well."
    )
    last_sent_at = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField(
        allow_null=True, help_text="Of the latest that did not go out."
    )


class ChannelsOut(serializers.Serializer[Any]):  # Any: rows
    """All that are there: a place has few."""

    items = ChannelStandingOut(many=True)


class MadeOut(ChannelOut):
    secret = serializers.CharField(
        help_text="By which it signs, shown this once: Berth-Signature is t=<seconds>,v1=<hex>,"
        " the HMAC-SHA256 of `<seconds>.<body>`. Empty of one of Slack's kind."
    )


class FleetChannelsApi(ApiView):
    @operation(
        "fleet_channels",
        tag="channels",
        summary="Channels that are told of all projects (owners and operators of the fleet)",
        answers={200: ChannelsOut},
    )
    def get(self, request: Request) -> Response:
        return _list(self, None)

    @operation(
        "fleet_channels_make",
        tag="channels",
        summary="Have another system told of all projects; the secret is shown once",
        takes=ChannelIn,
        answers={201: MadeOut},
        problems=(409, 503),
    )
    def post(self, request: Request) -> Response:
        return _make(self, lambda: None)


class TenantChannelsApi(ApiView):
    @operation(
        "tenants_channels",
        tag="channels",
        summary="Channels that are told of what is below a tenant (its owners and operators)",
        answers={200: ChannelsOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        return _list(self, access.tenant_or_404(self.actor, id))

    @operation(
        "tenants_channels_make",
        tag="channels",
        summary="Have another system told of what is below a tenant; the secret is shown once",
        takes=ChannelIn,
        answers={201: MadeOut},
        problems=(404, 409, 503),
    )
    def post(self, request: Request, id: UUID) -> Response:
        return _make(self, lambda: access.tenant_or_404(self.actor, id))


class ProjectChannelsApi(ApiView):
    @operation(
        "projects_channels",
        tag="channels",
        summary="Channels that are told of a project (its owners and operators)",
        answers={200: ChannelsOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        return _list(self, access.project_or_404(self.actor, id))

    @operation(
        "projects_channels_make",
        tag="channels",
        summary="Have another system told of a project; the secret is shown once",
        takes=ChannelIn,
        answers={201: MadeOut},
        problems=(404, 409, 503),
    )
    def post(self, request: Request, id: UUID) -> Response:
        return _make(self, lambda: access.project_or_404(self.actor, id))


class ChannelApi(ApiView):
    @operation(
        "channels_remove",
        tag="channels",
        summary="Tell nobody there any more, not even what waits",
        answers={204: None},
        problems=(404,),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        channel = selectors.one(id=id, actor=self.actor)
        channels.remove(actor=self.actor, channel=channel, at=self.at)
        return Response(status=204)


class ChannelTestApi(ApiView):
    @operation(
        "channels_test",
        tag="channels",
        summary="Send a message there that says it is a test, within seconds",
        answers={202: ChannelOut},
        problems=(404, 429),
    )
    def post(self, request: Request, id: UUID) -> Response:
        self.no_body()
        channel = selectors.one(id=id, actor=self.actor)
        channels.try_out(actor=self.actor, channel=channel, at=self.at)
        return Response(ChannelOut(channel).data, status=202)


def _list(view: ApiView, of: Place) -> Response:
    access.authorize_at(view.actor, Action.MANAGE_CHANNELS, place=of)
    return Response(ChannelsOut({"items": selectors.at_place(of)}).data)


def _make(view: ApiView, find: Callable[[], Place]) -> Response:
    """Not by an Idempotency-Key: the answer would be kept, and the secret with it."""
    body = view.body(ChannelIn)
    made, secret = channels.make(
        actor=view.actor,
        of=find(),
        name=body["name"],
        kind=ChannelKind(body["kind"]),
        url=body["url"],
        events=body["events"],
        at=view.at,
    )
    return Response({**ChannelOut(made).data, "secret": secret}, status=201)
