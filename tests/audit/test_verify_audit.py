"""`manage.py verify_audit` and `berth verify-audit`: what they print, and where they end."""

import json
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from django.core.management import CommandError, call_command

from controlplane.cli.main import main
from controlplane.counts import Counts
from tests.audit.writing import places, record, tamper

pytestmark = pytest.mark.django_db(transaction=True)


def run(anchor: Path | None = None) -> tuple[str, str, int]:
    """What it tells, what it tells of what is wrong, and its status."""
    out, err = StringIO(), StringIO()
    try:
        call_command("verify_audit", anchor=anchor, stdout=out, stderr=err)
    except SystemExit as end:
        return out.getvalue(), err.getvalue(), int(str(end.code))
    return out.getvalue(), err.getvalue(), 0


def berth(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify-audit", *arguments])


def test_it_tells_how_many_rows_of_which_chains_it_read() -> None:
    record(2)
    record()
    [number] = places()
    assert run() == (
        f"Chain {number}: 3 rows in 2 links.\n"
        "All 3 rows are as they were written, each in one chain.\n"
        "Compared with no anchor: that rows were cut off at an end can't be seen.\n",
        "",
        0,
    )


def test_of_what_is_wrong_it_tells_the_first_and_ends_with_1() -> None:
    [id] = record()
    tamper("UPDATE audit_auditevent SET actor = 'user:2' WHERE id = %s", [id])
    out, err, status = run()
    assert (out, status) == ("", 1)
    [number] = places()
    assert err == (
        f"Row {id} (quota.set, 2026-11-21T09:00:00.000000Z) is not as it was written in link 1 of"
        f" chain {number}.\n"
    )


def test_an_anchor_is_stored_compared_with_and_stored_anew(tmp_path: Path) -> None:
    anchor = tmp_path / "anchor.json"
    record()
    assert "Compared with no anchor" in run(anchor)[0]
    first = json.loads(anchor.read_text())["heads"]
    [id] = record()
    assert f"The chains go on from the ends in {anchor}." in run(anchor)[0]
    [number] = places()
    [[[was, _]], [[now, _]]] = first.values(), json.loads(anchor.read_text())["heads"].values()
    assert (was, now) == (1, 2)
    before = anchor.read_bytes()
    tamper("DELETE FROM audit_auditlink WHERE id = %s", [id])
    tamper("DELETE FROM audit_auditevent WHERE id = %s", [id])
    assert run(anchor)[1:] == (
        f"Chain {number} ends with link 1, and the anchor knows link 2: its end is cut off.\n",
        1,
    )
    assert anchor.read_bytes() == before, "what is unsound is no anchor"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"heads": {"a": [1, ""]}}', '{"heads": [1]}'])
def test_what_is_no_anchor_is_refused_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    anchor = tmp_path / "anchor.json"
    anchor.write_text(text)
    with pytest.raises(CommandError, match="is no anchor that this command wrote"):
        run(anchor)
    assert anchor.read_text() == text


def test_an_anchor_that_cant_be_stored_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="The anchor is not stored"):
        run(tmp_path / "missing" / "anchor.json")


def test_the_command_line_has_it_too(tmp_path: Path) -> None:
    [id] = record()
    told = berth("--anchor", str(tmp_path / "anchor.json"))
    assert told.exit_code == 0
    assert "All 1 rows are as they were written" in told.output
    tamper("UPDATE audit_auditevent SET actor = 'user:2' WHERE id = %s", [id])
    told = berth()
    assert told.exit_code == 1
    assert f"Row {id}" in told.output
    (tmp_path / "anchor.json").write_text("{}")
    told = berth("--anchor", str(tmp_path / "anchor.json"))
    assert told.exit_code == 1
    assert "is no anchor" in told.output


def test_the_numbers_tell_how_long_each_chain_is() -> None:
    record(2)
    record()
    [number] = places()
    [told] = [each for each in Counts().collect() if each.name == "berth_audit_links"]
    assert {sample.labels["chain"]: sample.value for sample in told.samples} == {
        str(each): 2 * (each == number) for each in range(16)
    }
