"""Keras 3 on JAX, channels first."""
from migrate.targets.base import Target

KERAS = Target(
    name="keras",
    module_base="Module",
    forward="call",
    threads_rngs=False,
    rngs_type="",
    rngs_new="Rngs()",
    rngs_member="Rngs()",
    keeps_super_init=True,
    list_class="ModuleList",
    dict_class="ModuleDict",
    sequential="Sequential",
    parameter="Parameter(x)",
    chosen="Parameter(x, requires_grad=trained)",
    buffer="Buffer(x, persistent=persistent)",
    read="v.value",
    write="v.assign(x)",
    rebind="v.assign(x)",
    training="self.training",
    call_mode="training=True",
    training_attribute="",
    reserved=frozenset({
        "layers", "input", "output", "dtype", "name", "weights", "losses", "metrics", "path", "build", "variables", "trainable", "stateless_call", "loss", "optimizer", "inputs",
        "outputs", "compute_dtype", "input_spec", "supports_masking", "call", "add_weight", "quantize", "summary", "fit", "evaluate", "predict", "compile", "states", "run_eagerly",
        "dtype_policy", "variable_dtype", "input_dtype", "built", "activity_regularizer", "autocast", "jit_compile", "steps_per_execution", "rematerialize", "save", "export", "history", "stop_training", "train_function", "test_function", "predict_function",
    }),
    wraps_static="",
    framework="Keras",
)
