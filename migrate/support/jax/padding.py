"""Padding as `torch.nn.functional.pad` does it: the last axis first, negative amounts crop."""
import jax.numpy as jnp


def pad_nd(input, pad, mode="constant", value=None):
    """Pads by (left, right) of the last axis, then of the one before, and so on."""
    input = jnp.asarray(input)
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2) + [tuple(pad[i : i + 2]) for i in range(len(pad) - 2, -1, -2)]
    grow = [(max(a, 0), max(b, 0)) for a, b in pairs]
    crop = tuple(slice(max(-a, 0), s - max(-b, 0)) for s, (a, b) in zip(input.shape, pairs))
    if mode == "constant":
        return jnp.pad(input[crop], grow, constant_values=value or 0)
    if mode == "circular":
        return jnp.pad(input[crop], grow, mode="wrap")
    # the mirror and the repeated edge are those of the whole axis, so they are cropped last
    whole = jnp.pad(input, grow, mode={"reflect": "reflect", "replicate": "edge"}[mode])
    return whole[tuple(slice(max(-a, 0), s - max(-b, 0)) for s, (a, b) in zip(whole.shape, pairs))]
