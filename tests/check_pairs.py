"""Hand-written pairs for the tests of the checker: a PyTorch model, the right Flax counterpart, and faults planted into it one at
a time."""

CONV_TORCH = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Stem(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return F.gelu(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self, width=8, classes=5):
        super().__init__()
        self.stem = Stem(width)
        self.drop = nn.Dropout(0.25)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, classes)
        self.register_buffer("shift", torch.linspace(-1, 1, width))

    def forward(self, x):
        x = self.stem(x).mean((2, 3))
        x = torch.tanh(self.mix(self.drop(x)) + self.shift)
        return self.head(x)
"""

CONV_FLAX = """
import jax
import jax.numpy as jnp
from flax import nnx


class Buffer(nnx.Variable):
    pass


class Linear(nnx.Linear):
    torch_state = {"weight": ("kernel", (1, 0)), "bias": ("bias", None)}


class Conv2d(nnx.Conv):
    torch_state = {"weight": ("kernel", (2, 3, 1, 0)), "bias": ("bias", None)}

    def __call__(self, x):
        return jnp.moveaxis(super().__call__(jnp.moveaxis(x, 1, -1)), -1, 1)


class BatchNorm2d(nnx.BatchNorm):
    torch_state = {
        "weight": ("scale", None), "bias": ("bias", None), "running_mean": ("mean", None), "running_var": ("var", None),
        "num_batches_tracked": None,
    }

    def __init__(self, features, eps=1e-5, momentum=0.1, *, rngs):
        super().__init__(features, axis=1, momentum=1 - momentum, epsilon=eps, use_fast_variance=False, rngs=rngs)

    def __call__(self, x):
        before = self.var[...]
        out = super().__call__(x)
        if not self.use_running_average:
            n = x.size // x.shape[1]
            self.var[...] = before * self.momentum + (self.var[...] - before * self.momentum) * (n / (n - 1))
        return out


class Stem(nnx.Module):
    def __init__(self, width, *, rngs):
        self.conv = Conv2d(3, width, (3, 3), 2, padding=1, rngs=rngs)
        self.norm = BatchNorm2d(width, rngs=rngs)

    def __call__(self, x):
        return jax.nn.gelu(self.norm(self.conv(x)), approximate=False)


class Net(nnx.Module):
    def __init__(self, width=8, classes=5, *, rngs):
        self.stem = Stem(width, rngs=rngs)
        self.drop = nnx.Dropout(0.25, rngs=rngs)
        self.mix = Linear(width, width, rngs=rngs)
        self.head = Linear(width, classes, rngs=rngs)
        self.shift = Buffer(jnp.linspace(-1, 1, width))

    def __call__(self, x):
        x = self.stem(x).mean((2, 3))
        x = jnp.tanh(self.mix(self.drop(x)) + self.shift)
        return self.head(x)
"""

# name: (text, replacement, stage that must fail (two where the size of the error decides), submodule that must be named or None)
CONV_FAULTS = {
    "batch norm epsilon": ("eps=1e-5", "eps=1e-6", "forward|submodules", "stem.norm"),
    "batch norm epsilon of Keras": ("eps=1e-5", "eps=1e-3", "forward", "stem.norm"),
    "padding SAME": ("padding=1", 'padding="SAME"', "forward", "stem.conv"),
    "tanh gelu": ("approximate=False", "approximate=True", "forward", "stem"),
    "square weight not transposed": (
        'torch_state = {"weight": ("kernel", (1, 0)), "bias": ("bias", None)}\n\n\nclass Conv2d',
        'torch_state = {"weight": ("kernel", (1, 0)), "bias": ("bias", None)}\n\n\nclass Square(nnx.Linear):\n'
        '    torch_state = {"weight": ("kernel", None), "bias": ("bias", None)}\n\n\nclass Conv2d',
        "forward",
        "mix",
    ),
    "momentum reversed": ("momentum=1 - momentum", "momentum=momentum", "train", None),
    "biased running variance": ("n / (n - 1)", "1.0", "train", None),
    "dropout left out": ("self.drop(x)", "x", "train", None),
    "dropout rate": ("nnx.Dropout(0.25", "nnx.Dropout(0.2", "train", None),
    "gradient stopped": ("x = self.stem(x).mean((2, 3))", "x = jax.lax.stop_gradient(self.stem(x)).mean((2, 3))", "gradients", None),
    "gradient stopped in training only": (
        "self.mix(self.drop(x))",
        "self.mix(self.drop(x) if self.drop.deterministic else jax.lax.stop_gradient(self.drop(x)))",
        "steps",
        None,
    ),
    "buffer not loaded": (
        "self.shift = Buffer(jnp.linspace(-1, 1, width))",
        "self.shift = nnx.data(jnp.linspace(-1, 1, width) * 2)",
        "loads",
        None,
    ),
    "buffer forgotten": (" + self.shift)", ")", "forward", ""),
    "bias forgotten": ("Linear(width, classes, rngs=rngs)", "Linear(width, classes, use_bias=False, rngs=rngs)", "loads", None),
    "other activation": ("jnp.tanh", "jax.nn.sigmoid", "forward", ""),
    "other axis": ("mean((2, 3))", "mean((1, 3))", "shapes", None),
    "batch size fixed": ("x = self.stem(x).mean((2, 3))", "x = self.stem(x).reshape(2, 8, -1).mean(2)", "shapes", None),
    "not traceable": ("return self.head(x)", "return self.head(x) if float(x.sum()) > -1e9 else x", "gradients", None),
    "does not import": ("from flax import nnx", "from flax import nnx\nimport no_such_module", "imports", None),
    "does not parse": ("class Net", "clas Net", "parses", None),
    "does not build": ("self.drop = nnx.Dropout(0.25, rngs=rngs)", "self.drop = nnx.Dropout(rate_=0.25)", "builds", None),
}

TEXT_TORCH = """
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = (u.view(b, t, self.heads, -1).transpose(1, 2) for u in self.qkv(x).chunk(3, -1))
        scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(~mask[:, None, None, :], float("-inf"))
        return self.out((F.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x, mask):
        x = x + self.attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, vocab=20, width=16, heads=2, depth=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids, mask):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, mask)
        logits = self.head(x)
        return {"logits": logits, "best": logits.argmax(-1), "noise": torch.randn_like(x) * 0.1 + x}


def make():
    torch.manual_seed(3)
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[1, 5:] = False
    return Encoder(), (torch.randint(0, 20, (2, 7)), mask)
"""

TEXT_FLAX = """
import math

import jax
import jax.numpy as jnp
from flax import nnx


class Linear(nnx.Linear):
    torch_state = {"weight": ("kernel", (1, 0)), "bias": ("bias", None)}


class Embedding(nnx.Embed):
    torch_state = {"weight": ("embedding", None)}


class LayerNorm(nnx.LayerNorm):
    torch_state = {"weight": ("scale", None), "bias": ("bias", None)}

    def __init__(self, width, *, rngs):
        super().__init__(width, epsilon=1e-5, use_fast_variance=False, rngs=rngs)


class Attention(nnx.Module):
    def __init__(self, width, heads, *, rngs):
        self.heads = heads
        self.qkv = Linear(width, 3 * width, rngs=rngs)
        self.out = Linear(width, width, rngs=rngs)

    def __call__(self, x, mask):
        b, t, c = x.shape
        q, k, v = (u.reshape(b, t, self.heads, -1).swapaxes(1, 2) for u in jnp.split(self.qkv(x), 3, -1))
        scores = jnp.where(~mask[:, None, None, :], float("-inf"), q @ k.swapaxes(-2, -1) / math.sqrt(q.shape[-1]))
        return self.out((jax.nn.softmax(scores, -1) @ v).swapaxes(1, 2).reshape(b, t, c))


class Block(nnx.Module):
    def __init__(self, width, heads, *, rngs):
        self.norm1 = LayerNorm(width, rngs=rngs)
        self.attn = Attention(width, heads, rngs=rngs)
        self.norm2 = LayerNorm(width, rngs=rngs)
        gelu = lambda x: jax.nn.gelu(x, approximate=False)
        self.mlp = nnx.Sequential(Linear(width, 2 * width, rngs=rngs), gelu, Linear(2 * width, width, rngs=rngs))

    def __call__(self, x, mask):
        x = x + self.attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Tied(nnx.Module):
    torch_state = {}

    def __init__(self, embed):
        self.embed = embed

    def __call__(self, x):
        return x @ self.embed.embedding[...].T


class Encoder(nnx.Module):
    torch_names = {"head.weight": "embed.weight"}

    def __init__(self, vocab=20, width=16, heads=2, depth=2, *, rngs):
        self.embed = Embedding(vocab, width, rngs=rngs)
        self.blocks = nnx.List([Block(width, heads, rngs=rngs) for _ in range(depth)])
        self.head = Tied(self.embed)
        self.rngs = rngs.fork()

    def __call__(self, ids, mask):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, mask)
        logits = self.head(x)
        return {"logits": logits, "best": logits.argmax(-1), "noise": jax.random.normal(self.rngs.default(), x.shape) * 0.1 + x}


def make(*, rngs):
    mask = jnp.ones((2, 7), bool).at[1, 5:].set(False)
    return Encoder(rngs=rngs), (jax.random.randint(rngs.default(), (2, 7), 0, 20), mask)
"""

TEXT_FAULTS = {
    "layer norm epsilon": ("epsilon=1e-5", "epsilon=1e-6", "forward|submodules", "blocks.0.norm1"),
    "mask polarity": ("~mask", "mask", "forward", "blocks.0.attn"),
    "no scaling": (" / math.sqrt(q.shape[-1])", "", "forward", "blocks.0.attn"),
    "order of q and k": ("q, k, v = (", "k, q, v = (", "forward", "blocks.0.attn"),
    "softmax over another axis": ("jax.nn.softmax(scores, -1)", "jax.nn.softmax(scores, -2)", "forward", "blocks.0.attn"),
    "square weight not transposed": (
        "self.out = Linear(width, width, rngs=rngs)",
        "self.out = Linear(width, width, rngs=rngs)\n        self.out.torch_state = {}\n"
        '        Flat = type("Flat", (nnx.Linear,), {"torch_state": {"weight": ("kernel", None), "bias": ("bias", None)}})\n'
        "        self.out = Flat(width, width, rngs=rngs)",
        "forward",
        "blocks.0.attn.out",
    ),
    "residual forgotten": ("x = x + self.attn", "x = self.attn", "forward", "blocks.0"),
    "tanh gelu": ("approximate=False", "approximate=True", "forward", "blocks.0.mlp"),
    "off by one": ("logits.argmax(-1)", "logits[..., 1:].argmax(-1)", "forward", ""),
    "other key order": ('{"logits": logits, "best": logits.argmax(-1),', '{"best": logits.argmax(-1), "logits": logits,', "shapes", None),
    "noise left out": ("* 0.1 + x", "* 0.0 + x", "forward", ""),
    "noise too strong": ("* 0.1 + x", "* 0.2 + x", "forward", ""),
    "untied": (
        "return x @ self.embed.embedding[...].T",
        "return x @ jax.lax.stop_gradient(self.embed.embedding[...]).T",
        "gradients",
        None,
    ),
}


def fault(text: str, old: str, new: str) -> str:
    """The text with a fault planted; the place must be there."""
    assert text.count(old) >= 1, old
    if new.count("class Square"):
        return text.replace(old, new).replace("self.mix = Linear(", "self.mix = Square(")
    return text.replace(old, new)
