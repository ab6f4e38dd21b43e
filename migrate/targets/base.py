"""What differs between targets that is not a table."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A framework that code is converted to. No rule asks for a target's name; it asks for these."""

    name: str
    module_base: str  # template names: the class that replaces torch.nn.Module
    forward: str  # the method that replaces forward
    threads_rngs: bool  # constructors and builders take `rngs`
    rngs_type: str  # its annotation
    rngs_new: str  # a fresh stream, for module level
    rngs_member: str  # the stream of a module, made in its constructor
    keeps_super_init: bool
    list_class: str  # replaces ModuleList
    dict_class: str
    sequential: str  # native, for known layers only
    parameter: str  # template of a parameter
    chosen: str  # a parameter `x` that is trained if `trained`
    buffer: str
    read: str  # template: reads the array of a variable `v`
    write: str  # template: `v` gets a value `x` of the same shape
    rebind: str  # template: `v` gets a value `x` of any shape and dtype
    notes: str  # the method of a variable that keeps what code writes on it, "" where it takes attributes
    training: str  # template: reads the training state of `self`
    call_mode: str  # the argument of a call that trains, "" where only train() says it
    training_attribute: str  # class attribute that a class reading it needs, "" if none
    reserved: frozenset[str]  # attribute names that the framework owns
    wraps_static: str  # template around a static value of an attribute that also holds data, "" if not needed
    framework: str
