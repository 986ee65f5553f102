"""Prices as people read them: not rounded to cents, since a core costs a few tenths of one."""

from decimal import Decimal

from django import template
from django.conf import settings

from controlplane.templatetags.berth import NONE, SYMBOLS

register = template.Library()


@register.filter
def price(amount: Decimal | None, currency: str | None = None) -> str:
    """Decimal("0.035") -> "€0.035", Decimal("2.5") -> "€2.50": two digits, or all there are.

    `currency` is an ISO 4217 code, by default the installation's. None is a dash.
    """
    if amount is None:
        return NONE
    code = currency or settings.BERTH_CURRENCY
    digits = len(f"{amount.normalize():f}".partition(".")[2])
    text = f"{amount:,.{max(2, digits)}f}"
    symbol = SYMBOLS.get(code)
    return f"{symbol}{text}" if symbol else f"{text}\N{NO-BREAK SPACE}{code}"
