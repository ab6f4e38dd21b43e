"""Sequences of different lengths, as `torch.nn.utils.rnn` packs them."""
import jax
import jax.numpy as jnp
import numpy as np


@jax.tree_util.register_pytree_node_class
class PackedSequence:
    """Sequences of different lengths: `padded` is (T, B, *), the longest first, with `lengths` (B,).

    `sorted_indices` is the order in which they came, `unsorted_indices` its inverse; both None where they were sorted. PyTorch's
    `data` and `batch_sizes`, the values without padding, step by step, need lengths that are known: not under jit.
    """

    def __init__(self, data, batch_sizes, sorted_indices=None, unsorted_indices=None):
        sizes = np.asarray(batch_sizes)
        steps, rows = np.nonzero(np.arange(sizes[0]) < sizes[:, None])
        data = jnp.asarray(data)
        self.padded = jnp.zeros((len(sizes), sizes[0], *data.shape[1:]), data.dtype).at[steps, rows].set(data)
        self.lengths = (sizes[:, None] > np.arange(sizes[0])).sum(0)
        if unsorted_indices is None and sorted_indices is not None:
            unsorted_indices = jnp.argsort(sorted_indices)
        self.sorted_indices, self.unsorted_indices = sorted_indices, unsorted_indices

    def tree_flatten(self):
        """The parts, for JAX."""
        return (self.padded, self.lengths, self.sorted_indices, self.unsorted_indices), None

    @classmethod
    def tree_unflatten(cls, _, parts):
        """From the parts."""
        self = object.__new__(cls)
        self.padded, self.lengths, self.sorted_indices, self.unsorted_indices = parts
        return self

    def replace(self, padded):
        """The same lengths and order with other values."""
        return self.tree_unflatten(None, (padded, self.lengths, self.sorted_indices, self.unsorted_indices))

    @property
    def mask(self):
        """(T, B): where a step belongs to its sequence; in numpy where the lengths are, so that they are known under jit."""
        steps = np.arange(self.padded.shape[0])[:, None]
        return steps < self.lengths

    @property
    def data(self):
        """(sum of the lengths, *): the values without padding, step by step."""
        return self.padded[np.nonzero(np.asarray(self.mask))]

    @property
    def batch_sizes(self):
        """(T,): how many sequences reach each step."""
        return jnp.asarray(np.asarray(self.mask).sum(1)[: int(self.lengths.max())])


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """(T, B, *), or (B, T, *) with `batch_first`, and the B lengths."""
    padded = jnp.swapaxes(input, 0, 1) if batch_first else jnp.asarray(input)
    lengths = lengths if isinstance(lengths, jax.core.Tracer) else np.asarray(lengths)
    if enforce_sorted:
        if isinstance(lengths, np.ndarray) and (np.diff(lengths) > 0).any():
            raise ValueError("lengths must decrease: pass enforce_sorted=False to have the sequences sorted")
        return PackedSequence.tree_unflatten(None, (padded, lengths, None, None))
    order = (-lengths).argsort()
    return PackedSequence.tree_unflatten(None, (padded[:, order], lengths[order], order, order.argsort()))


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded sequences in their first order, as long as the longest or `total_length`, and their lengths."""
    padded, lengths = sequence.padded, sequence.lengths
    if total_length is None:
        if isinstance(lengths, jax.core.Tracer):
            raise ValueError("under jit the longest length is not known: pass total_length, the size of the padded input")
        total_length = int(lengths.max())
    padded = padded[:total_length]
    mask = sequence.mask[:total_length].reshape(*padded.shape[:2], *[1] * (padded.ndim - 2))
    padded = jnp.where(mask, padded, jnp.asarray(padding_value, padded.dtype))
    padded = jnp.pad(padded, [(0, total_length - padded.shape[0])] + [(0, 0)] * (padded.ndim - 1), constant_values=padding_value)
    if sequence.unsorted_indices is not None:
        padded, lengths = padded[:, sequence.unsorted_indices], lengths[sequence.unsorted_indices]
    return jnp.swapaxes(padded, 0, 1) if batch_first else padded, jnp.asarray(lengths)


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences (L_i, *) as one array (T, B, *), or (B, T, *) with `batch_first`."""
    longest = max(s.shape[0] for s in sequences)
    rows = []
    for s in sequences:
        gap = longest - s.shape[0]
        side = (0, gap) if padding_side == "right" else (gap, 0)
        rows.append(jnp.pad(s, [side] + [(0, 0)] * (s.ndim - 1), constant_values=padding_value))
    return jnp.stack(rows, 0 if batch_first else 1)


def pack_sequence(sequences, enforce_sorted=True):
    """Packs a list of sequences (L_i, *)."""
    return pack_padded_sequence(pad_sequence(sequences), [s.shape[0] for s in sequences], enforce_sorted=enforce_sorted)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The list of sequences without their padding."""
    rows = padded_sequences if batch_first else jnp.swapaxes(padded_sequences, 0, 1)
    return [row[: int(n)] for row, n in zip(rows, lengths)]


def unpack_sequence(packed_sequences):
    """The list of sequences that were packed."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


def invert_permutation(permutation):
    """The permutation that undoes this one."""
    return None if permutation is None else jnp.argsort(permutation)
