"""The base of converted modules, and the kinds of variables."""
import contextlib
import copy
import inspect
from collections import OrderedDict

import jax
import jax.numpy as jnp
import keras
import numpy as np


class State(keras.Variable):
    """A variable of Keras that may stand where its array may: in functions of jax.numpy, in loops, with the methods of an array."""

    def __init_subclass__(cls):
        jax.tree_util.register_pytree_node(cls, lambda variable: ((variable.value,), None), lambda _, arrays: arrays[0])

    def __iter__(self):
        return iter(self.value)

    def __len__(self):
        return len(self.value)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.value, name)


class Parameter(State):
    """A trained array; read as `.value`."""

    def __init__(self, data, requires_grad=True):
        super().__init__(jnp.asarray(data), trainable=requires_grad)


class Buffer(State):
    """An array that is state but is not trained; one that is not persistent has no place in a state dict."""

    def __init__(self, data, persistent=True):
        super().__init__(jnp.asarray(data), trainable=False)
        self.persistent = persistent


def value_of(variable):
    """The array of a variable; None stays None."""
    return None if variable is None else variable.value


def uniform(shape, fan_in):
    """A parameter as PyTorch's layers start: uniform within 1 / sqrt(fan_in); `keras.utils.set_random_seed` seeds it."""
    bound = fan_in**-0.5 if fan_in else 0.0
    return Parameter(np.random.uniform(-bound, bound, shape).astype("float32"))


class Rngs(keras.random.SeedGenerator):
    """A random stream that Keras keeps as state; every call, of itself or of a method, gives a new key."""

    def __call__(self):
        return self.next()

    dropout = params = noise = default = __call__

    def __deepcopy__(self, memo):
        return Rngs()  # a copied layer draws numbers of its own


@contextlib.contextmanager
def in_mode(module, training):
    """Runs a call of `module` in training or evaluation mode (None: the mode it has); layers of Keras inside follow."""
    context = module._get_call_context()
    outer = getattr(context, "training", None)
    if training is None and not isinstance(context.entry_layer, Module):
        training = outer
    before = []
    if training is not None and training != module.training:
        before = [(m, m.training) for m in submodules(module)]
        module.train(training)
    context.training = module.training
    try:
        yield
    finally:
        context.training = outer
        for m, mode in before:
            m.training = mode
        module._maybe_reset_call_context()


def tracked(layer):
    """The layers that Keras found in the attributes of a layer."""
    return layer._flatten_layers(include_self=False, recursive=False)


def submodules(module):
    """`module` and the modules below it, each before its own, once."""
    found = {id(module): module}
    for child in tracked(module):
        if isinstance(child, Module):
            found.update((id(m), m) for m in submodules(child) if id(m) not in found)
    return list(found.values())


def forget(module, name):
    """Makes Keras forget the layer or variable in an attribute that is replaced or deleted."""
    old = vars(module).get(name)
    if isinstance(old, keras.Layer | keras.Variable) and sum(v is old for v in vars(module).values()) == 1:
        module._tracker.untrack(old)


class Module(keras.Model):
    """A Keras model with PyTorch's manners: variables are made by the constructor, and `call` takes any arguments.

    `model(x)` runs in the mode that `train()` or `eval()` set, evaluation at first; `model(x, training=True)` trains, as `fit` does.
    """

    training = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if init := vars(cls).get("__init__"):  # Keras reads its arguments, and can't where it is decorated
            own = [*inspect.signature(init).parameters.values()]
            if own[0].kind is inspect.Parameter.VAR_POSITIONAL:
                own.insert(0, inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY))
            init.__signature__ = inspect.Signature(own)

    def __new__(cls, *args, **kwargs):
        return keras.Layer.__new__(cls, *args, **kwargs)  # `keras.Model` would forget the arguments, which `save` writes down

    def __init__(self):
        super().__init__(autocast=False)
        self.built = True
        self._call_has_training_arg = True  # `fit` tells `stateless_call`

    def train(self, mode=True):
        self.training = mode
        for child in tracked(self):
            if isinstance(child, Module):
                child.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def __call__(self, *args, training=None, **kwargs):
        if training is not None and "training" in self.call_signature_parameters:
            kwargs["training"] = training
        if any(keras.utils.is_keras_tensor(leaf) for leaf in keras.tree.flatten((args, kwargs))):
            return super().__call__(*args, **kwargs)  # Keras' functional API
        with in_mode(self, training):
            return self.call(*args, **kwargs)

    def stateless_call(self, trainable_variables, non_trainable_variables, *args, training=None, **kwargs):
        if training is not None and "training" in self.call_signature_parameters:
            kwargs["training"] = training
        with in_mode(self, training):
            return super().stateless_call(trainable_variables, non_trainable_variables, *args, **kwargs)

    @classmethod
    def from_config(cls, config):
        extra = {"name", "trainable", "dtype"} - set(inspect.signature(cls).parameters)  # Keras' own settings
        model = cls(**{name: value for name, value in config.items() if name not in extra})
        model.trainable = config.get("trainable", True)
        return model

    def __setattr__(self, name, value):
        if vars(self).get(name) is not value:
            forget(self, name)
        if isinstance(value, dict) and type(value) not in (dict, OrderedDict) and not hasattr(value, "tracker"):
            object.__setattr__(self, name, value)  # Keras would make a plain dict of it
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name):
        forget(self, name)
        object.__delattr__(self, name)

    def __deepcopy__(self, memo):
        new = memo[id(self)] = type(self).__new__(type(self))
        Module.__init__(new)
        own = set(vars(new)) | (COMPILED if self.compiled else set())
        for child in tracked(self):
            if not isinstance(child, Module) and id(child) not in memo:
                memo[id(child)] = copy_native(child)
        memo.update((id(f), f) for f in vars(self).values() if callable(f) and not isinstance(f, keras.Layer | Rngs))
        for name, value in vars(self).items():
            if name not in own:
                setattr(new, name, copy.deepcopy(value, memo))
        return new


# What `compile` and `fit` leave on a model.
COMPILED = {"optimizer", "history", "stop_training", "_compile_config", "_compiled_trainable_state", "_eval_epoch_iterator", "_jax_state"}


def copy_native(layer):
    """A layer of Keras with the same settings and values."""
    new = type(layer).from_config(layer.get_config())
    if layer.built and layer.weights:
        new.build_from_config(layer.get_build_config())
        new.set_weights(layer.get_weights())
    return new
