"""An image network of the size of ResNet-50: 25.6 million parameters."""

import torch
import torch.nn as nn


class Block(nn.Module):
    """Narrow, convolve, widen, beside a shortcut."""

    def __init__(self, before, width, stride=1):
        super().__init__()
        after = 4 * width
        self.narrow = nn.Conv2d(before, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.widen = nn.Conv2d(width, after, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = None
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        kept = x if self.shortcut is None else self.shortcut(x)
        y = self.relu(self.norm1(self.narrow(x)))
        y = self.relu(self.norm2(self.conv(y)))
        return self.relu(self.norm3(self.widen(y)) + kept)


class ResNet(nn.Module):
    def __init__(self, depths=(3, 4, 6, 3), width=64, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        stages, before = [], width
        for i, depth in enumerate(depths):
            blocks = []
            for j in range(depth):
                blocks.append(Block(before, width * 2**i, stride=2 if i and not j else 1))
                before = 4 * width * 2**i
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(before, classes)

    def forward(self, x):
        x = self.pool(self.stages(self.stem(x)))
        return self.head(torch.flatten(x, 1))
