"""What the console prints: tables as wide as it is, and characters that do not steer it."""

import io

import pandas as pd

from speechlab.cli._console import (
    _SafeConsole,
    build_empty_table,
    console,
    print_headline,
    print_plain,
    print_table,
)


def printed(capsys, monkeypatch, width, table, figures):
    monkeypatch.setattr(console, "width", width)
    head = pd.DataFrame(table)
    head.attrs["figures"] = figures
    print_headline("Title", head)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_words_of_fourteen_letters_are_not_broken(capsys, monkeypatch):
    table = {
        "Voice": ["fourteenletter", "internationalisation"],
        "Text": ["one two three four five six", "one"],
    }
    words = {word for line in printed(capsys, monkeypatch, 24, table, ()) for word in line.split()}
    assert {"fourteenletter", "internationali", "sation"} <= words


def test_characters_that_steer_a_terminal_are_not_printed(capsys):
    print_plain("red \x1b[31m [bold] :smile: \x9b2J\u202e end")
    assert capsys.readouterr().out == "red \ufffd[31m [bold] :smile: \ufffd2J\ufffd end\n"


def test_marks_are_words_where_the_console_cannot_write_them():
    output = io.TextIOWrapper(io.BytesIO(), encoding="cp1252", errors="strict", write_through=True)
    _SafeConsole(file=output, width=80).print("[green]✓[/] engines … [red]✗[/] service – gone")
    output.seek(0)
    assert output.read() == "ok engines ... FAILED service - gone\n"


def test_a_row_is_one_line_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(console, "width", 30)
    table = build_empty_table("Voices", "name", "id")
    table.add_row("a voice with a long name", "d4069e78-3426-58fb-bb21-63b96328a97d")
    print_table(table)
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].split("  ") == ["a voice with a long name", "d4069e78-3426-58fb-bb21-63b96328a97d"]
    assert console.width == 30
