"""Settings of a model."""


class HParams(dict):
    """The arguments of a constructor, as items and as attributes."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]

    __setattr__ = dict.__setitem__


def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, context_fn=None, determinism_check="default", debug=False, **kwargs):
    """Calls a function; wrap it in jax.checkpoint or nnx.remat to save memory."""
    return function(*args, **kwargs)
