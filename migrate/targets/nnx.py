"""Flax NNX."""
from migrate.targets.base import Target

FLAX = Target(
    name="flax",
    module_base="nnx.Module",
    forward="__call__",
    threads_rngs=True,
    rngs_type="nnx.Rngs",
    rngs_new="nnx.Rngs(0)",
    rngs_member="rngs.fork()",
    keeps_super_init=False,
    list_class="nnx.List",
    dict_class="ModuleDict",
    sequential="nnx.Sequential",
    parameter="nnx.Param(x)",
    chosen="(nnx.Param if trained else Buffer)(x)",
    buffer="Buffer(x, persistent=persistent)",
    read="v[...]",
    write="v[...] = x",
    rebind="v.set_value(x)",
    notes="set_metadata",
    training="not self.deterministic",
    call_mode="",
    training_attribute="deterministic = False",
    reserved=frozenset({"deterministic", "use_running_average"}),
    wraps_static="nnx.data(x)",
    framework="Flax",
)
