"""The documentation page of the diagnostics, made from the table. `python -m migrate.report.pages docs/diagnostics.md` writes it."""

import sys
from pathlib import Path

from migrate.diagnostics import CODES

BANDS = {
    "1": "1xx: rewritten; values stay the same.",
    "2": "2xx: converted, but it may differ in the way that the message says.",
    "3": "3xx: left as it was, because nothing equivalent is known. A comment marks the place in the output.",
    "4": "4xx: the numbers of the two sides disagree.",
    "5": "5xx: the input or the project could not be read.",
    "9": "9xx: a bug in migrate. Please report it.",
}
HEAD = """# Diagnostics

Every construct that does not become an exact equivalent is named at its place, with one of these codes. `migrate explain MIG302`
shows one of them in the
terminal. Codes are never used again for something else.

This page is made from the table in `migrate/diagnostics.py` by `make docs`.
"""


def diagnostics_page() -> str:
    """The page, as Markdown."""
    parts = [HEAD]
    band = ""
    for code in sorted(CODES):
        entry = CODES[code]
        if code[3] != band:
            band = code[3]
            parts.append(f"\n## {BANDS[band]}\n")
        parts.append(
            f"\n### {code}: {entry.title}\n\nSeverity: {entry.severity}.\n\n**Why.** {entry.why}\n\n**What to do.** {entry.way_out}\n"
        )
    return "".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(diagnostics_page(), encoding="utf-8")
