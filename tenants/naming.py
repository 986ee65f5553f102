"""Pure: which names of tenants and projects a reader could take for one another.

What looks alike follows Unicode Technical Standard 39: `reading` is its skeleton, over the letters
of Cyrillic, Greek and Armenian that look like Latin ones, small capitals, digits that look like
letters, and everything that NFKC holds to be the same. It holds two names to be alike more often
than the eye does: names that stand side by side have to be told apart at a glance. Of scripts that
nobody writes names in today, some of which are Latin to the eye, no letter is accepted.
"""

import unicodedata
from collections.abc import Iterable

from controlplane.kernel import text
from controlplane.kernel.errors import Invalid

MAX_NAME = 100
_LOOKS_LIKE = str.maketrans(
    "АВЕКМНОРСТХУІЈЅԚԜаеорсухіјѕһӏԁԛԝвкмнтгпѵ"
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανρικυγβεζητχω"
    "ՕՍՏԼօոսհցզ"
    "\u0131\u0251\u0261\u01c0\u0196\u0269"
    "0|1i",
    "ABEKMHOPCTXYIJSQWaeopcyxijshldqwbkmhtrnv"
    "ABEZHIKMNOPTYXoavpikuybezhtxw"
    "OUSLonuhgq"
    "laglll"
    "olll",
)  # fmt: skip
_ALONE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN"})
"""Scripts with letters that look alike: no word has those of two, or of one and another script."""
_WRITTEN = _ALONE | {
    *("ARABIC", "BENGALI", "BOPOMOFO", "CJK", "DEVANAGARI", "ETHIOPIC", "GEORGIAN", "GUJARATI"),
    *("GURMUKHI", "HANGUL", "HEBREW", "HIRAGANA", "IDEOGRAPHIC", "KANNADA", "KATAKANA"),
    *("KATAKANA-HIRAGANA", "KHMER", "LAO", "MALAYALAM", "MYANMAR", "ORIYA"),
    *("SINHALA", "TAMIL", "TELUGU", "THAANA", "THAI", "TIBETAN"),
}
"""Scripts of everyday use, and signs beside them: Unicode Standard Annex 31, table 5."""
_SMALL_CAPITAL = "LATIN LETTER SMALL CAPITAL "
_BESIDE_LATIN = frozenset(
    {"BOPOMOFO", "CJK", "HANGUL", "HIRAGANA", "IDEOGRAPHIC", "KATAKANA", "KATAKANA-HIRAGANA"}
)
"""What is written in one word with Latin letters, and looks like none of them (UTS 39, 5.2)."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that show nothing."""


def checked(name: str, *, alike: Iterable[str] = (), pointer: str = "/name") -> str:
    """The name as it is stored. Raises Invalid for what is none, for a word of letters of several
    scripts, or of one that is not written today, and for one that reads like one of `alike`, which
    stand beside it."""
    name = name.strip()
    fault = text.fault(name)
    if fault or not 1 <= len(name) <= MAX_NAME:
        message = fault or f"A name has 1 to {MAX_NAME} characters."
        raise Invalid(message, pointer=pointer, code="bad-character" if fault else "invalid")
    if blank := sorted(_BLANK.intersection(name)):
        message = f"U+{ord(blank[0]):04X} shows nothing: not accepted in a name."
        raise Invalid(message, pointer=pointer, code="bad-character")
    for word in name.split():
        found = _scripts(word)
        if rare := [each.capitalize() for each in found if each not in _WRITTEN]:
            message = f"{word!r} has letters of {rare[0]}: write it in a script of everyday use."
            raise Invalid(message, pointer=pointer, code="bad-character")
        if len(found) > 1 and not _ALONE.isdisjoint(found):
            told = " and ".join(each.capitalize() for each in found)
            message = f"{word!r} has letters of {told}, some of which look alike: write it in one."
            raise Invalid(message, pointer=pointer, code="looks-alike")
    for other in alike:
        if reading(other) == reading(name):
            message = f"It reads like {other!r}, which stands beside it: take another name."
            raise Invalid(message, pointer=pointer, code="looks-alike")
    return name


def reading(name: str) -> str:
    """What a reader sees of it: names of one reading look alike. No name itself."""
    return _bare(_bare(name).casefold())


def _bare(name: str) -> str:
    """Without accents, spaces and dashes, each letter as the Latin one that it looks like."""
    kept = (
        _plain(each)
        for each in unicodedata.normalize("NFKD", name)
        if unicodedata.category(each) not in {"Mn", "Me", "Pd", "Pc", "Zs"}
    )
    return "".join(kept).translate(_LOOKS_LIKE).replace("rn", "m")


def _plain(letter: str) -> str:
    """The letter that a small capital stands for; nothing for what merely modifies others."""
    name = unicodedata.name(letter, "")
    if name.startswith("MODIFIER LETTER "):
        return ""
    capital = name.removeprefix(_SMALL_CAPITAL)
    return capital.lower() if name.startswith(_SMALL_CAPITAL) and len(capital) == 1 else letter


def _scripts(word: str) -> list[str]:
    """Of its letters; those that go with Latin ones are left out beside them."""
    found = {
        unicodedata.name(each, "?").partition(" ")[0]
        for each in unicodedata.normalize("NFKC", word)
        if unicodedata.category(each).startswith("L")
    } - {"MODIFIER"}
    return sorted(found - _BESIDE_LATIN if "LATIN" in found else found)
