"""Names that a reader could take for one another."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.kernel.errors import Invalid
from tenants import naming

NAME = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@pytest.mark.parametrize(
    "other",
    [
        "vision lab",
        "Visionlab",
        "Vision-Lab",
        "Vision_Lab",
        "V1sion Lab",
        "Vi\N{LATIN SMALL LETTER LONG S}ion Lab",
        "Visi\N{LATIN SMALL LETTER O WITH DIAERESIS}n Lab",
        "\N{FULLWIDTH LATIN CAPITAL LETTER V}ision Lab",
        "Vlslon Lab",
        "Vision\N{NO-BREAK SPACE}Lab",
        "Visi0n Lab",
        "\u1d20\u026as\u026a\u1d0f\u0274 \u029f\u1d00\u0299",  # small capitals
        "V\u0269sion \u0196ab",  # iotas
        "Vision\u02bb Lab",
        "V\ua7aesion Lab",  # a small capital's capital
    ],
)
def test_what_reads_like_a_neighbour_is_refused(other: str) -> None:
    with pytest.raises(Invalid, match="It reads like 'Vision Lab'") as refused:
        naming.checked(other, alike=["Speech Lab", "Vision Lab"])
    assert (refused.value.pointer, refused.value.code) == ("/name", "looks-alike")


@pytest.mark.parametrize(
    ("latin", "other"),
    [
        ("cope", "\N{CYRILLIC SMALL LETTER ES}\N{CYRILLIC SMALL LETTER O}"
                 "\N{CYRILLIC SMALL LETTER ER}\N{CYRILLIC SMALL LETTER IE}"),
        ("BETA", "\N{GREEK CAPITAL LETTER BETA}\N{GREEK CAPITAL LETTER EPSILON}"
                 "\N{GREEK CAPITAL LETTER TAU}\N{GREEK CAPITAL LETTER ALPHA}"),
    ],
)  # fmt: skip
def test_a_whole_word_of_another_script_is_seen_through(latin: str, other: str) -> None:
    assert naming.checked(other) == other
    with pytest.raises(Invalid, match="reads like"):
        naming.checked(other, alike=[latin])


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("Lisu", "\ua4e1\ua4ee\ua4d0"),
        ("Cherokee", "\u13de\u13aa\u13f4"),
        ("Coptic", "\u2c9f\u2c83"),
        ("Deseret", "\U00010404"),
    ],
)
def test_a_script_that_nobody_writes_in_today_is_refused(script: str, name: str) -> None:
    with pytest.raises(Invalid, match=f"has letters of {script}: write it in a script of every"):
        naming.checked(name)


@pytest.mark.parametrize(
    "name",
    [
        "ビール ラボ",
        "人々",
        "실험실",
        "מעבדה",
        "مختبر",
        "प्रयोगशाला",
        "ห้องแล็บ",
        "Ⅳ. Labor",
        "Kaʻu",
        "GPUサーバー",
        "AI佐々木",
        "Комп\u02bcютер",
    ],
)
def test_a_script_of_everyday_use_is_not(name: str) -> None:
    assert naming.checked(name, alike=["Vision Lab"]) == name


def test_capitals_read_like_small_letters_in_each_script() -> None:
    assert naming.reading("МОСКВА") == naming.reading("москва")
    assert naming.reading("ΒΕΤΑ") == naming.reading("βετα")


def test_a_word_is_in_one_script() -> None:
    mixed = "Visi\N{CYRILLIC SMALL LETTER O}n Lab"
    with pytest.raises(Invalid, match=r"has letters of Cyrillic and Latin, some of which look"):
        naming.checked(mixed)
    assert naming.checked("Лаборатория Vision") == "Лаборатория Vision"


@pytest.mark.parametrize("name", ["Speech Lab", "Vision Lab 2", "Vision", "Labor Vision"])
def test_another_name_is_another(name: str) -> None:
    assert naming.checked(name, alike=["Vision Lab"]) == name


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\nb", "a\N{ZERO WIDTH SPACE}b"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        naming.checked(name)
    assert refused.value.pointer == "/name"


@example("\ua7ae\u01a6")
@given(NAME)
def test_a_reading_reads_like_itself(name: str) -> None:
    assert naming.reading(name.upper().lower()) == naming.reading(name.lower())
    assert naming.reading(naming.reading(name)) == naming.reading(name)


@pytest.mark.parametrize(
    "name",
    [
        "Visi\N{ARMENIAN SMALL LETTER OH}n",
        "L\N{CHEROKEE LETTER GO}b",
        "Lab\N{HANGUL FILLER}",
        "Lab\N{BRAILLE PATTERN BLANK}",
    ],
)
def test_a_letter_of_any_other_script_and_what_shows_nothing_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match=r"some of which look alike|shows nothing|of everyday use"):
        naming.checked(name)


def test_latin_letters_stand_beside_those_that_look_like_none() -> None:
    for name in ("AI\N{KATAKANA LETTER RA}\N{KATAKANA LETTER BO}", "3D\N{HANGUL SYLLABLE GA}"):
        assert naming.checked(name) == name


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("modem", "modern"),
        ("Team", "Team\N{COMBINING ENCLOSING CIRCLE}"),
        ("Lab", "L\N{LATIN SMALL LETTER ALPHA}b"),
        ("lib", "l\N{LATIN SMALL LETTER DOTLESS I}b"),
    ],
)
def test_what_only_few_tell_apart_reads_alike(name: str, other: str) -> None:
    assert naming.reading(name) == naming.reading(other)
