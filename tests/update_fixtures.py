"""Writes the golden output of fixtures/: what each `torch.py` becomes for each target, and what is reported. Read the diff before
it is committed.

usage: update_fixtures.py [CASE ...]
"""

import sys
from pathlib import Path

FIXTURES = Path(__file__).parent.parent / "fixtures"
TARGETS = {"flax": "nnx.py", "keras": "keras.py"}
CASES = sorted(p.parent.name for p in FIXTURES.glob("*/torch.py"))


def golden(case):
    """File name -> text, for each target and the report."""
    import migrate
    from migrate.report import text

    source = (FIXTURES / case / "torch.py").read_text()
    files, report = {}, []
    for target, name in TARGETS.items():
        conversion = migrate.convert_source(source, target=target, filename="torch.py")
        files[name] = conversion.code
        lines = [f"{d.severity}: {text.line(path, d)}" for path, d in text.located({"torch.py": conversion})]
        support = ", ".join(f"{path} ({content.count(chr(10))} lines)" for path, content in conversion.support.items())
        ratio = conversion.code.count("\n") / source.count("\n")
        report += [
            f"{name}: {source.count(chr(10))} -> {conversion.code.count(chr(10))} lines ({ratio:.2f}); support: {support or 'none'}",
            *lines,
            "",
        ]
    return files | {"report.txt": "\n".join(report)}


def main():
    """Writes them, and says which changed."""
    for case in sys.argv[1:] or CASES:
        for name, content in golden(case).items():
            path = FIXTURES / case / name
            if not path.exists() or path.read_text() != content:
                path.write_text(content)
                print(f"wrote {path.relative_to(FIXTURES.parent)}")


if __name__ == "__main__":
    main()
