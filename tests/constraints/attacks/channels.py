"""Attacks on where other systems are told."""

from tenants.models import Channel, ChannelKind, Delivery, Project, Tenant, User
from tests.constraints.attack import Attack
from tests.constraints.attacks.notices import BY_MAIL
from tests.constraints.moves import Move, Statement, change, insert_like
from tests.constraints.rows import Values, make

OF_PROJECT: Values = {"project": lambda: make(Project)}
OF_TENANT: Values = {"tenant": lambda: make(Tenant)}
BY_CHANNEL: Values = {"user": None, "channel": lambda: make(Channel)}


def _again(of: Values) -> Move:
    def prepare() -> Statement:
        return insert_like(make(Channel, **of))

    return prepare


ATTACKS = (
    Attack(
        "channel_of_one",
        "a channel is a project's and a tenant's",
        change(Channel, OF_PROJECT, tenant_id=lambda: make(Tenant).pk),
    ),
    *(
        Attack("channel_name_once", what, _again(of))
        for what, of in (
            ("a project has two of a name", OF_PROJECT),
            ("a tenant has two of a name", OF_TENANT),
            ("the fleet has two of a name", {}),
        )
    ),
    Attack("channel_kind_known", "nobody knows what it is sent", change(Channel, kind="fax")),
    Attack("channel_events_known", "it is for nothing", change(Channel, events=[])),
    Attack("channel_events_known", "it is for tests", change(Channel, events=["channel.test"])),
    Attack("channel_is_sealed", "an address lies open", change(Channel, sealed=b"https://x")),
    Attack(
        "channel_is_sealed",
        "an address lies open in a long text",
        change(Channel, sealed=b"https://hooks.example/" + b"x" * 60),
    ),
    Attack(
        "delivery_to_one",
        "it is for somebody and for a channel",
        change(Delivery, BY_MAIL, channel_id=lambda: make(Channel, kind=ChannelKind.SLACK).pk),
    ),
    Attack("delivery_to_one", "it is for nobody", change(Delivery, BY_MAIL, user_id=None)),
    Attack(
        "delivery_to_one",
        "a channel's is for somebody too",
        change(Delivery, BY_CHANNEL, user_id=lambda: make(User).pk),
    ),
    Attack(
        "delivery_once_a_channel",
        "a channel is told twice",
        lambda: insert_like(make(Delivery, **BY_CHANNEL)),
    ),
)
