"""Whatever a file contains, its conversion ends, and what comes out parses: code that nobody would write, nested deeper than anybody would."""
import ast
import copy
import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_rules import EXAMPLES

import migrate
from migrate.infer.kinds import LARGEST, TENSOR, Kind, join
from migrate.pipeline import deep

TREES = [ast.parse(e.text) for _, _, e in EXAMPLES if len(e.text) < 3000]
HEADS = ["x", "torch", "nn.Linear(3, 3)", "self", "F.relu", "None", "nn.Module"]


def places(tree: ast.AST, kind: type) -> list[tuple[ast.AST, str, int | None]]:
    """(node, field, index) of all statements or of all expressions that are read."""
    found = []
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, kind) and isinstance(getattr(child, "ctx", ast.Load()), ast.Load):
                    found.append((node, name, index))
    return found


def put(place: tuple[ast.AST, str, int | None], child: ast.AST) -> None:
    """Replaces what stands at a place."""
    node, name, index = place
    if index is None:
        setattr(node, name, child)
    else:
        getattr(node, name)[index] = child


def at(place: tuple[ast.AST, str, int | None]) -> ast.AST:
    """What stands at a place."""
    node, name, index = place
    return getattr(node, name) if index is None else getattr(node, name)[index]


def strange(draw: random.Random) -> str | None:
    """An example of a rule into which pieces of others were put; None where that is no Python."""
    tree = copy.deepcopy(draw.choice(TREES))
    for _ in range(draw.randint(1, 6)):
        kind = draw.choice([ast.stmt, ast.expr, ast.expr])
        mine, other = places(tree, kind), places(draw.choice(TREES), kind)
        if not mine or not other:
            continue
        given = copy.deepcopy(at(draw.choice(other))) if draw.random() < 0.8 or kind is ast.stmt else ast.parse(draw.choice(HEADS), mode="eval").body
        put(draw.choice(mine), given)
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        compile(text, "strange", "exec")
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return text


def survives(text: str, target: str) -> None:
    """Converts, without an error of ours, into something that parses."""
    found = migrate.convert_source(text, target=target)
    assert not [str(d) for d in found.diagnostics if d.code.startswith("MIG9")], text
    deep(lambda: ast.parse(found.code))


@settings(max_examples=120, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**9), st.sampled_from(["flax", "keras"]))
def test_strange_code(seed, target):
    text = strange(random.Random(seed))
    if text is not None:
        survives(text, target)


DEEP = {
    "operators": lambda n: "y = x" + " + x" * n,
    "right": lambda n: "y = x" + " ** x" * n,
    "calls": lambda n: "y = x" + ".relu()" * n,
    "subscripts": lambda n: "y = x" + "[0]" * n,
    "attributes": lambda n: "y = x" + ".T" * n,
    "minus": lambda n: "y = " + "-" * n + "x",
    "conditions": lambda n: "y = " + "x if x else " * n + "x",
    "branches": lambda n: "if x:\n    pass\n" + "elif x:\n    y = x.relu()\n" * n,
    "strings": lambda n: "y = x" + " + 'a'" * n,
    "comparisons": lambda n: "y = x" + " < x" * n,
    "parentheses": lambda n: "y = " + "(" * n + "x" + ")" * n,
}


@pytest.mark.parametrize("kind", DEEP)
def test_deep_code_is_converted_or_refused(kind):
    head = "import torch\n\nx = torch.ones(3)\n"
    found = migrate.convert_source(head + DEEP[kind](1000 if kind == "branches" else 3000) + "\n")
    codes = {d.code for d in found.diagnostics}
    assert not any(c.startswith("MIG9") for c in codes), found.diagnostics
    refused = codes & {"MIG501", "MIG503"}
    assert refused or "import torch\n" not in found.code
    if not refused:
        deep(lambda: ast.parse(found.code))


def parser(n: int) -> str:
    """Functions of a parser that call each other: what their lists hold may come from very many places."""
    text = "class Tokens(list):\n    pass\n\n\ndef get_0(value):\n    token = Tokens()\n    token.append(value[0])\n    return token, value[1:]\n"
    for i in range(1, n):
        text += (
            f"\n\ndef get_{i}(value):\n    found = Tokens()\n    while value:\n        if value[0] in 'ab':\n            token, value = get_{i - 1}(value)\n"
            f"        elif value[0] == 'c':\n            token, value = get_{i // 2}(value[1:])\n        else:\n            token, value = get_{max(0, i - 2)}(value)\n"
            "        token[:0] = [value[0]]\n        found.append(token)\n    return found, value\n"
        )
    return text


def test_functions_that_share_much_are_walked_in_little_time():
    start = time.process_time()
    found = migrate.convert_source(parser(20))
    assert found.code == parser(20) and time.process_time() - start < 20, "with each way told apart it takes hours"


def test_names_that_are_made_of_each_other_are_followed_in_little_time():
    steps = "".join(f"    {n} = torch.roll(a, {i}) + b * torch.relu(c)\n" for i in range(8) for n in "abc")
    start = time.process_time()
    migrate.convert_source(f"import torch\n\n\ndef f(n: int):\n    a = b = c = torch.zeros(n)\n{steps}    return a.sum().item() + b\n")
    assert time.process_time() - start < 20, "with each way told apart it takes hours"


def test_kinds_of_structures_within_structures_stay_small():
    def nested():
        kind = Kind("dict", item=TENSOR)
        for _ in range(40):
            kind = Kind("dict", fields=(("a", kind), ("b", kind)), item=kind)
        return kind

    assert join(nested(), nested()).size <= LARGEST, "without an end there would be 3 ** 40 of them to compare"
    table = Kind("dict", fields=tuple((str(n), TENSOR) for n in range(2 * LARGEST)), item=TENSOR)
    assert table.element == TENSOR and table.member("3") is None, "of a large table the kind of its values stays known"
