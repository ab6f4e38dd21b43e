"""The documentation says what is: examples are real output, commands and options exist, the page of codes is the table, links lead
somewhere."""

import ast
import re
import shlex
from pathlib import Path

import click
import pytest

import migrate
from migrate.cli.main import COMMANDS, cli
from migrate.report.operators import pages, verified
from migrate.report.pages import diagnostics_page
from migrate.tables import standard

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    """The fenced blocks of a language."""
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.M | re.S)


def test_the_example_of_the_readme_is_real():
    before, after = blocks(ROOT / "README.md", "python")[:2]
    assert before.startswith("# attention.py\n")
    conversion = migrate.convert_source(before.removeprefix("# attention.py\n"), filename="attention.py")
    assert conversion.code == after
    assert not conversion.support and all(d.severity == "info" for d in conversion.diagnostics)


def test_the_page_of_codes_is_the_table():
    assert (ROOT / "docs/diagnostics.md").read_text(encoding="utf-8") == diagnostics_page(), "run `make docs`"


def test_the_pages_of_operators_are_the_tables():
    made = pages(standard())
    folder = ROOT / "docs" / "operators"
    assert sorted(made) == sorted(p.name for p in folder.iterdir())
    for name, text in made.items():
        assert (folder / name).read_text(encoding="utf-8") == text, f"{name} is stale: run `make docs`"


def test_what_was_verified_is_said_with_its_releases():
    runs = verified()
    assert {"operators flax", "operators keras"} <= set(runs)
    for run in runs.values():
        assert set(run["releases"]) == {"torch", "jax", "flax", "keras"}
    index = pages(standard())["index.md"]
    assert all(run in index for run in runs) and "wrong" not in index


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_and_options_exist(page):
    for line in re.findall(r"^ +(migrate [a-z].*?)(?:  +#.*)?$", page.read_text(encoding="utf-8"), re.M):
        words = shlex.split(line.replace("[", "").replace("]", ""), comments=True)
        assert words[1] in COMMANDS, line
        command = cli.get_command(click.Context(cli), words[1])
        known = {o for p in command.params for o in [*p.opts, *p.secondary_opts]}
        for word in words[2:]:
            if word.startswith("-") and word != "-":
                assert word in known, f"{line}: {word}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_examples_parse(page):
    for block in blocks(page, "python"):
        ast.parse(block)


def test_every_page_is_in_the_navigation_and_every_picture_is_used():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")} == set(re.findall(r"[\w/-]+\.md", nav))
    assert {p.name for p in (ROOT / "docs/pictures").iterdir()} == set(re.findall(r"pictures/([\w-]+\.svg)", text))


def test_codes_in_the_pages_exist():
    from migrate.diagnostics import CODES

    for page in PAGES:
        assert set(re.findall(r"MIG\d{3}", page.read_text(encoding="utf-8"))) <= set(CODES), page


def test_pages_say_which_stages_there_are():
    from migrate.check.verdict import STAGES

    text = (ROOT / "docs/checking.md").read_text(encoding="utf-8")
    table = text.partition("| stage |")[2].partition("\n\n")[0]
    rows = [s for row in re.findall(r"^\| ([\w, ]+) \|", table, re.M) for s in row.split(", ")]
    assert rows == list(STAGES)
