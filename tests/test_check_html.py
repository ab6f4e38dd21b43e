"""The HTML report: complete, escaped, and made of nothing but itself."""

from html.parser import HTMLParser

import pytest

from migrate.check.verdict import Divergence, Drift, Place, Stage, Submodule, Tensor, Verdict
from migrate.report import html

pytest.importorskip("jinja2")

ROWS = (
    Submodule("stem.conv", "Conv2d", "Conv", 1, 0.5, 1e-7, 0.7),
    Submodule("stem.act", "GELU", verdict="not separate"),
    Submodule("stem", "Stem", "Stem", 1, 5000.0, 0.3, None, "differs", "off by 0.3"),
    Submodule("", "Net<script>", "Net", 1, float("inf"), float("inf"), None, "differs", "NaN"),
)
PICTURE = {"name": "stem", "shape": [2, 8], "cut": [], "error": 0.3, "scale": 2.0, "units": 5000.0, "grids": [[[1.0, -1.0]], [[1.0, -0.5]], [[0.0, 0.5]]]}


def verdict(**changed):
    fields = {
        "ok": False,
        "reached": "shapes",
        "message": "forward: <b>off</b> & away",
        "stages": (Stage("forward", "failed", "off", 1.0, Place("a.py", 3, "x < y")),),
        "submodules": ROWS,
        "first": Divergence("stem", "Stem", "`stem` differs", Place("a.py", 2), Place("b.py", 1)),
        "outputs": (Tensor("random", (2, 8), "float32", 0.3, 5000.0, 1e-7, "off"),),
        "drift": (Drift("stem", 0.004, 0.02),),
        "model": "Net('<x>')",
        "extra": {"pictures": [PICTURE]},
    }
    return Verdict(**(fields | changed))


class Tags(HTMLParser):
    """Collects tags, their nesting, and what they would load."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.loads = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.loads += [v for k, v in attrs if k in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def page(tmp_path):
    (tmp_path / "a.py").write_text("class Net:\n    x = '<i>'\n    y = 1\n")
    (tmp_path / "b.py").write_text("class Net:\n    x = '<i>'\n    y = 2\n")
    return html.page(verdict(), tmp_path / "a.py", tmp_path / "b.py")


def test_it_is_whole_and_loads_nothing(page):
    tags = Tags()
    tags.feed(page)
    assert not tags.open and not tags.loads and "script" not in tags.seen and "://" not in page


def test_everything_is_escaped(page):
    assert "<script>" not in page and "<b>off</b>" not in page and "<i>" not in page
    assert "&lt;b&gt;off&lt;/b&gt; &amp; away" in page and "Net(&#39;&lt;x&gt;&#39;)" in page


def test_it_says_what_the_verdict_says(page):
    for said in ("different", "`stem` differs", "reached: shapes", "5.0e+03", "0.40 %", "Error against depth", "Largest errors", "not separate"):
        assert said in page, said
    assert page.count('class="changed"') + page.count('class="here"') == 3, "a changed line, and one marked on each side"


def test_the_tree_has_parents_above_their_children():
    assert [(t["row"].name, t["depth"]) for t in html.tree(ROWS)] == [("", 0), ("stem", 1), ("stem.conv", 2), ("stem.act", 2)]


def test_bars_and_colours():
    assert html.colour(1) == "rgb(255,0,0)" and html.colour(-1) == "rgb(0,0,255)" and html.colour(0) == "rgb(255,255,255)"
    assert abs(html._share(8.0) - 60) < 1e-6 and html._share(1e9) == 100


def test_a_verdict_without_anything(tmp_path):
    page = html.page(Verdict(False, "", "the original ran longer than 6 s"), None, None)
    assert "ran longer" in page and "Submodules" not in page
