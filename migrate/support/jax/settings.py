"""Settings of a model."""


class HParams(dict):
    """The arguments of a constructor, as items and as attributes."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]

    __setattr__ = dict.__setitem__
