"""Which characters a name or a note may hold, and how input is repeated. Pure: no HTTP, no
database."""

import unicodedata

# Characters that reorder what follows them ("Trojan source"); like every other of category Cf they
# can't be seen, so that two names with and without one look the same.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_REFUSED = {
    "Cc": "a control character",
    "Cf": "an invisible format character",
    "Cs": "a lone surrogate",
    "Zl": "a line separator",
    "Zp": "a paragraph separator",
}
_LINE = frozenset("\n\t")


def fault(text: str, *, lines: bool = False) -> str | None:
    """What makes `text` unfit to be shown as a name, None when nothing does.

    Refused are NUL and other control characters, line separators, lone surrogates and invisible
    format characters (zero-width ones, bidirectional controls). `lines` permits line feeds and
    tabs, for notes of several lines.
    """
    if text.isprintable():
        return None
    for position, character in enumerate(text):
        if lines and character in _LINE:
            continue
        kind = _REFUSED.get(unicodedata.category(character))
        if character in _BIDI:
            kind = "a bidirectional control"
        if kind:
            return f"U+{ord(character):04X} at position {position + 1} is {kind}"
    return None


def shown(text: str) -> str:
    """A piece of input as an error may repeat it: short, and with every odd character escaped."""
    return ascii(text if len(text) <= 60 else f"{text[:60]}…")
