import torch
import torch.nn as nn
import torch.nn.functional as F


class Sampler(nn.Module):
    """Draws a class from logits, with a learned temperature."""

    def __init__(self, width: int, classes: int = 10):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)
        self.register_buffer("seen", torch.zeros(classes))
        self.temperature = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor, mask=None):
        logits = self.head(self.norm(x)) / self.temperature.clamp(min=0.1)
        if mask is not None:
            logits = logits.masked_fill(mask, float("-inf"))
        drawn = torch.multinomial(F.softmax(logits, dim=-1), 1).squeeze(-1)
        self.seen += F.one_hot(drawn, logits.size(-1)).sum(0)
        order = torch.ops.mylib.rank(logits)
        scale = torch.quantile(logits, 0.5)
        with torch.autocast("cuda"):
            y = torch.sort(logits, stable=False)[0]
        return drawn, order, scale, y
