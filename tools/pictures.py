"""The pictures of the documentation, made by running the program. `make pictures` writes docs/pictures/*.svg."""

import asyncio
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pexpect
from rich.console import Console
from rich.text import Text

from migrate.review.project import open_review
from migrate.review.store import check_path, load_check
from migrate.tui.app import ReviewApp

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CHECK = 'migrate check attention.py migrated/attention.py --model "Attention(32)" --input "f32[2,5,32]"'


def main(out: Path) -> None:
    """Makes all of them."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "attention.py").write_text(_readme_model(), encoding="utf-8")
        shutil.copy(ROOT / "docs/examples/sampler.py", work)
        os.chdir(work)
        _terminal(out / "convert.svg", ["migrate convert sampler.py", "migrate explain MIG306"])
        _terminal(out / "check.svg", ["migrate convert attention.py", CHECK])
        shutil.copytree(ROOT / "docs/examples/project", work / "project", ignore=shutil.ignore_patterns("__pycache__"))
        _terminal(out / "port.svg", ["ls project", "migrate port project -o ported --dry-run", "migrate port project -o ported"])
        _terminal(out / "prompts.svg", ["migrate review sampler.py --no-tui -o prompts"], answers="y\nx\nn\ns\nq\n", most=46)
        _screen(out / "review.svg", "sampler.py", ["y", "y", "n", "y", "y", "y"])
        _screen(out / "review-frame.svg", "sampler.py", ["y", "y", "n", "y", "k", "k", "k", "k", "k", "k"])
        _screen(out / "review-measured.svg", "attention.py", ["j", "j"])


def _readme_model() -> str:
    return README.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0].removeprefix("# attention.py\n")


def _terminal(path: Path, commands: Sequence[str], answers: str = "", most: int = 60, width: int = 110) -> None:
    """Commands and what they print, in colour."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for i, command in enumerate(commands):
        if i:
            console.print()
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        real = command.replace("migrate ", f"{sys.executable} -m migrate.cli ", 1)
        lines = _ran(real, answers, width).splitlines()
        for line in lines[:most]:
            console.print(Text.from_ansi(line))
        if len(lines) > most:
            console.print("…")
    _save(path, console.export_svg(title="migrate"))


def _ran(command: str, answers: str, width: int) -> str:
    """What a command prints in a terminal; what is about the running itself (standard error) left out."""
    env = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    errors = "" if answers else " 2>/dev/null"
    child = pexpect.spawn("/bin/sh", ["-c", command + errors], env=env, dimensions=(200, width), timeout=300, encoding="utf-8")
    seen = []
    for answer in answers.splitlines():
        child.expect(r"\? $")
        child.sendline(answer)
        seen += [child.before, child.after]
    child.expect(pexpect.EOF)
    return "".join([*seen, child.before]).replace("\r\n", "\n")


def _screen(path: Path, source: str, keys: Sequence[str], size: tuple[int, int] = (124, 29)) -> None:
    """The full screen after some keys."""
    app = ReviewApp(open_review(source), "flax", load_check(check_path(Path("migrated") / source)))

    async def run() -> str:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
            return app.export_screenshot(simplify=True)

    _save(path, asyncio.run(run()))


def _save(path: Path, svg: str) -> None:
    """Without fonts from elsewhere: the reader's own monospaced font does."""
    svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.S)
    svg = re.sub(r"font-family: Fira Code[^;]*;", "font-family: Fira Code, DejaVu Sans Mono, Menlo, Consolas, monospace;", svg)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg, encoding="utf-8")
    print(f"{path.name}: {len(svg) // 1024} KiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
