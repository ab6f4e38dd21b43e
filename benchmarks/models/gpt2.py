"""A language model of the size of GPT-2 small: 124 million parameters, with tied embeddings."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("seen", torch.tril(torch.ones(context, context, dtype=torch.bool)), persistent=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (u.view(b, t, self.heads, -1).transpose(1, 2) for u in self.qkv(x).chunk(3, dim=-1))
        score = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).masked_fill(~self.seen[:t, :t], float("-inf"))
        y = self.drop(F.softmax(score, dim=-1)) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, context)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))


class GPT(nn.Module):
    def __init__(self, words=50257, context=1024, width=768, depth=12, heads=12):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(context, width)
        self.drop = nn.Dropout(0.1)
        self.blocks = nn.ModuleList([Block(width, heads, context) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        x = self.drop(self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
