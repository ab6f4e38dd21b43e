"""A small project of everything that a port meets, and what its output is."""

import json
from pathlib import Path

NET = '''import torch
import torch.nn as nn
import torch.nn.functional as F

from {package}.blocks import Block, make_norm


class Net(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.block = Block(n)
        self.norm = make_norm(n)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return F.relu(self.norm(self.block(x))) + {extra}
'''
BLOCKS = '''import torch.nn as nn


def make_norm(n):
    return nn.BatchNorm1d(n)


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        return self.fc(x)
'''
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# Café\n"]},
        {"cell_type": "code", "id": "b", "execution_count": 3, "metadata": {}, "outputs": [{"output_type": "stream", "text": ["secret"]}],
         "source": ["%matplotlib inline\n", "import torch\n", "import torch.nn as nn\n", "!pip install torch"]},
        {"cell_type": "code", "id": "c", "execution_count": 4, "metadata": {}, "outputs": [], "source": ["layer = nn.ReLU()\n", "files = !ls\n", "y = torch.ones(3)  # a comment\n", "y"]},
        {"cell_type": "code", "id": "d", "execution_count": 5, "metadata": {}, "outputs": [], "source": ["%%bash\n", "echo torch"]},
        {"cell_type": "code", "id": "e", "execution_count": 6, "metadata": {}, "outputs": [], "source": ["this is no python"]},
        {"cell_type": "code", "id": "f", "execution_count": 7, "metadata": {}, "outputs": [], "source": ["%%time\n", "z = torch.frobnicate(y)"]},
    ],
    "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
}
FILES = {
    "README.md": "# about torch\n",
    ".gitignore": "*.log\n/secret/\n!keep.log\n",
    "noise.log": "x",
    "keep.log": "x",
    "secret/key.py": "import torch\n",
    "requirements.txt": "# what it needs\ntorch>=2.0\ntorchvision\nrequests==2.0  # http\n",
    "pyproject.toml": '[project]\nname = "p"\ndependencies = ["torch>=2", "requests"]\n',
    "one/__init__.py": "from .net import Net\n",
    "one/net.py": NET.format(package="one", extra="0"),
    "one/blocks.py": BLOCKS,
    "one/data.json": "{}",
    "two/__init__.py": "",
    "two/net.py": NET.format(package="two", extra="torch.frobnicate(x)"),
    "two/blocks.py": BLOCKS,
    "three/__init__.py": "from one.net import Net\n\n\nclass Big(Net):\n    pass\n",
    "tools/train.py": "import torch\nfrom helper import seed\n\nseed(3)\nx = torch.zeros(3)\n",
    "tools/helper.py": "import torch\n\n\ndef seed(n):\n    return torch.ones(n)\n",
    "tests/test_net.py": "import torch\n",
    "broken.py": "import torch\nx = (\n",
    "<script>alert(1).py": "import torch\n\nx = torch.frobnicate('</script><script>alert(2)</script>')\n",
    "demo.ipynb": json.dumps(NOTEBOOK, indent=1),
}


def write_project(folder: Path) -> Path:
    """The project in a new folder."""
    for path, text in FILES.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder


def output(out: Path) -> dict[str, bytes]:
    """All files of an output but the state of the runs, and what Python leaves where a test imports the output."""
    found = (p for p in sorted(out.rglob("*")) if p.is_file() and p.parent.name != "__pycache__")
    return {str(p.relative_to(out)): p.read_bytes() for p in found if p.relative_to(out).parts[0] != ".migrate"}
