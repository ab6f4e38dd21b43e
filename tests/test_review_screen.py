"""The full screen: what its keys and the mouse do, at two sizes; what it shows."""

import asyncio

import pytest
from test_review import MODEL

from migrate.review.filters import Filter
from migrate.review.project import open_review
from migrate.tui import sides
from migrate.tui.app import ReviewApp
from migrate.tui.dialogs import Ask, Choose, Help


@pytest.fixture
def model(tmp_path):
    """A file with a model."""
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def drive(path, steps, size=(120, 36)):
    """Runs the screen and gives it to `steps`; returns the app."""
    app = ReviewApp(open_review(path), "flax", {})

    async def run():
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(app, pilot)

    asyncio.run(run())
    return app


def shown(app):
    """The text on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def test_side_by_side_and_stacked(model):
    async def steps(app, pilot):
        first = shown(app)
        assert (
            "class Block(nn.Module):" in first and "class Block(nnx.Module):" in first and "0 of" in first and "1 needs attention" in first
        )
        row = next(line for line in first.splitlines() if "class Block(nn.Module):" in line)
        assert "class Block(nnx.Module):" in row
        await pilot.press("v")
        row = next(line for line in shown(app).splitlines() if "class Block(nn.Module):" in line)
        assert "nnx" not in row
        await pilot.press("l")
        assert app.query_one("#list").size.width == 0

    drive(model, steps)


def test_keys(model):
    async def steps(app, pilot):
        s = app.session
        await pilot.press("x")
        assert app.at.kind == "left (MIG301)" and "MIG301" in shown(app)
        await pilot.press("n")
        assert s.progress().rejected == 1 and "rejected" in shown(app)
        await pilot.press("u")
        assert s.progress().rejected == 0 and app.at.needs_attention
        await pilot.press("g")
        assert s.progress().open == 1
        await pilot.press("u", "k", "s")
        assert not s.state(app.at)
        while app.at.kind != "nn.Linear":
            await pilot.press("j")
        await pilot.press("t")
        assert {s.state(p) for p in s.pieces if p.kind == "nn.Linear"} == {"accepted"}
        await pilot.press("e")
        assert "no editor" in shown(app)
        await pilot.press("A")
        assert isinstance(app.screen, Ask)
        await pilot.press("escape", "A", "y")
        await pilot.pause()
        assert s.progress().open == 0 and "Write the result?" in shown(app)
        await pilot.press("w")

    assert drive(model, steps).return_value is True


def test_filters_and_help(model):
    async def steps(app, pilot):
        await pilot.press("question_mark")
        assert isinstance(app.screen, Help) and "Imports follow" in shown(app)
        await pilot.press("escape", "f")
        assert isinstance(app.screen, Choose)
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        assert app.filter == Filter(severity="error") and [p.kind for p in app.shown] == ["left (MIG301)"]
        await pilot.press("y")
        await pilot.press("q")

    assert drive(model, steps).return_value is False


def test_the_mouse_and_a_small_terminal(model):
    async def steps(app, pilot):
        await pilot.click("#list", offset=(8, 3))
        await pilot.pause()
        assert app.at is app.shown[3]
        assert all(len(line) <= 60 for line in shown(app).splitlines())
        await pilot.resize_terminal(150, 50)
        await pilot.pause()
        assert app.at is app.shown[3]

    drive(model, steps, size=(60, 20))


def test_nothing_to_decide(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text("def f(x):\n    return x\n")

    async def steps(app, pilot):
        assert "Nothing to decide" in shown(app)
        await pilot.press("y", "n", "u", "t", "s", "x", "q")

    assert drive(path, steps).return_value is False


def test_long_lines_go_on_indented():
    (line,) = sides.lines_of("    " + "word " * 20)
    parts = sides._wrapped(line, 40)
    assert [p.plain[:9] for p in parts[1:]] == ["        w"] * (len(parts) - 1) and all(p.cell_len <= 40 for p in parts)
    assert "".join(p.plain.strip() + " " for p in parts).split() == ["word"] * 20
    (line,) = sides.lines_of("x" * 100)
    assert "".join(p.plain.strip() for p in sides._wrapped(line, 30)) == "x" * 100
