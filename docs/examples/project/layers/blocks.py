import torch
import torch.nn as nn
import torch.nn.functional as F


class SEBlock(nn.Module):
    def __init__(self, channels, r=4):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, channels // r, 1)
        self.fc2 = nn.Conv2d(channels // r, channels, 1)

    def forward(self, x):
        s = F.adaptive_avg_pool2d(x, 1)
        s = torch.sigmoid(self.fc2(F.relu(self.fc1(s), inplace=True)))
        return x * s
