"""Layers that learn the size of their input from the first input, or from the weights loaded into them."""
from migrate.support.keras.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from migrate.support.keras.linear import Linear
from migrate.support.keras.module import Module
from migrate.support.keras.norms import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d


class Lazy(Module):
    """Mixed into a layer whose first argument is the size of axis `input_axis` of its input: its parameters are made at the first call."""

    input_axis = 1
    told_by = ("weight", 0)  # the parameter and the axis of it that has this size

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        self.later = (args, kwargs)

    def make(self, size):
        """Makes the layer for inputs of `size` features."""
        args, kwargs = self.later
        del self.later
        super().__init__(size, *args, **kwargs)

    def build_from(self, tensors):
        """Makes the layer from its own part of a PyTorch state dict."""
        name, axis = self.told_by
        if "later" in vars(self) and name in tensors:
            self.make(tensors[name].shape[axis])

    def __call__(self, input, *args, **kwargs):
        if "later" in vars(self):
            self.make(input.shape[self.input_axis])
        return super().__call__(input, *args, **kwargs)


class LazyLinear(Lazy, Linear):
    """`Linear` without in_features."""

    input_axis = -1
    told_by = ("weight", 1)


class LazyConvNd(Lazy):
    """A convolution without in_channels."""

    def build_from(self, tensors):
        """The weight is (out_channels, in_channels / groups, *kernel_size)."""
        if "later" in vars(self) and "weight" in tensors:
            args, kwargs = self.later
            groups = args[5] if len(args) > 5 else kwargs.get("groups", 1)
            self.make(tensors["weight"].shape[1] * groups)


class LazyConv1d(LazyConvNd, Conv1d):
    """`Conv1d` without in_channels."""

    input_axis = -2


class LazyConv2d(LazyConvNd, Conv2d):
    """`Conv2d` without in_channels."""

    input_axis = -3


class LazyConv3d(LazyConvNd, Conv3d):
    """`Conv3d` without in_channels."""

    input_axis = -4


class LazyConvTranspose1d(Lazy, ConvTranspose1d):
    """`ConvTranspose1d` without in_channels."""

    input_axis = -2


class LazyConvTranspose2d(Lazy, ConvTranspose2d):
    """`ConvTranspose2d` without in_channels."""

    input_axis = -3


class LazyConvTranspose3d(Lazy, ConvTranspose3d):
    """`ConvTranspose3d` without in_channels."""

    input_axis = -4


class LazyBatchNorm1d(Lazy, BatchNorm1d):
    """`BatchNorm1d` without num_features."""


class LazyBatchNorm2d(Lazy, BatchNorm2d):
    """`BatchNorm2d` without num_features."""


class LazyBatchNorm3d(Lazy, BatchNorm3d):
    """`BatchNorm3d` without num_features."""


class LazyInstanceNorm1d(Lazy, InstanceNorm1d):
    """`InstanceNorm1d` without num_features."""

    input_axis = -2

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, *, bias=True):
        super().__init__(eps, momentum, affine, track_running_stats, bias=bias)


class LazyInstanceNorm2d(Lazy, InstanceNorm2d):
    """`InstanceNorm2d` without num_features."""

    input_axis = -3

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, *, bias=True):
        super().__init__(eps, momentum, affine, track_running_stats, bias=bias)


class LazyInstanceNorm3d(Lazy, InstanceNorm3d):
    """`InstanceNorm3d` without num_features."""

    input_axis = -4

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, *, bias=True):
        super().__init__(eps, momentum, affine, track_running_stats, bias=bias)
