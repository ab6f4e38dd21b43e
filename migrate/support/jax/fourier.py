"""Windows and short-time Fourier transforms."""
import math

import jax.numpy as jnp
import numpy as np

PAD_MODES = {"replicate": "edge", "circular": "wrap"}


def points(M, sym, start, step):
    """M points from start(period) on, step(period) apart; the period of a symmetric window is one less."""
    period = max(M - 1 if sym else M, 1)
    return start(period) + step(period) * np.arange(M)


def general_cosine(M, *, a, sym=True, dtype=None):
    """Sum of cosines with (float32) weights a, the signs alternating: (M,)."""
    turn = points(M, sym, lambda n: 0, lambda n: 2 * math.pi / n)
    window = sum((-1) ** i * float(np.float32(w)) * np.cos(i * turn) for i, w in enumerate(a))
    return jnp.asarray(np.ones(1) if M == 1 else window, dtype or jnp.float32)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None):
    """alpha - (1 - alpha) cos: (M,)."""
    return general_cosine(M, a=(alpha, 1 - alpha), sym=sym, dtype=dtype)


def hamming(M, *, sym=True, dtype=None):
    """Hamming window: (M,)."""
    return general_hamming(M, sym=sym, dtype=dtype)


def hann(M, *, sym=True, dtype=None):
    """Hann window: (M,)."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype)


def blackman(M, *, sym=True, dtype=None):
    """Blackman window: (M,)."""
    return general_cosine(M, a=(0.42, 0.5, 0.08), sym=sym, dtype=dtype)


def nuttall(M, *, sym=True, dtype=None):
    """Minimum four-term window of Nuttall: (M,)."""
    return general_cosine(M, a=(0.3635819, 0.4891775, 0.1365995, 0.0106411), sym=sym, dtype=dtype)


def bartlett(M, *, sym=True, dtype=None):
    """Triangle: (M,)."""
    x = points(M, sym, lambda n: -1, lambda n: 2 / n)
    return jnp.asarray(np.ones(1) if M == 1 else 1 - np.abs(x), dtype or jnp.float32)


def cosine(M, *, sym=True, dtype=None):
    """Half a wave of a sine: (M,)."""
    x = (np.arange(M) + 0.5) * math.pi / (M if sym or M == 1 else M + 1)
    return jnp.asarray(np.sin(x), dtype or jnp.float32)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None):
    """Exponential decay from the center: (M,)."""
    center = (M - 1 if sym or M == 1 else M) / 2 if center is None else center
    return jnp.asarray(np.exp(-np.abs(np.arange(M) - center) / tau), dtype or jnp.float32)


def gaussian(M, *, std=1.0, sym=True, dtype=None):
    """Gaussian window: (M,)."""
    x = np.arange(M) - (M - 1 if sym or M == 1 else M) / 2
    return jnp.asarray(np.exp(-((x / std) ** 2) / 2), dtype or jnp.float32)


def kaiser(M, *, beta=12.0, sym=True, dtype=None):
    """Kaiser window: (M,)."""
    x = points(M, sym, lambda n: -1, lambda n: 2 / n)
    window = np.i0(beta * np.sqrt(np.maximum(1 - x**2, 0))) / np.i0(beta)
    return jnp.asarray(np.ones(1) if M == 1 else window, dtype or jnp.float32)


def full_window(window, win_length, n_fft):
    """A window (ones, if None) with zeros on both sides: (n_fft,)."""
    window = jnp.ones(win_length) if window is None else window
    left = (n_fft - win_length) // 2
    return jnp.pad(window, (left, n_fft - win_length - left))


def frame_index(frames, hop, n_fft):
    """Positions of each frame's samples: (frames, n_fft)."""
    return np.arange(frames)[:, None] * hop + np.arange(n_fft)


def stft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None
):
    """Short-time Fourier transform: (..., time) -> complex (..., frequency, frames)."""
    hop = hop_length or n_fft // 4
    window = full_window(window, win_length or n_fft, n_fft)
    if center:
        sides = [(0, 0)] * (input.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        input = jnp.pad(input, sides, PAD_MODES.get(pad_mode, pad_mode))
    frames = input[..., frame_index(1 + (input.shape[-1] - n_fft) // hop, hop, n_fft)] * window
    onesided = not jnp.iscomplexobj(frames) if onesided is None else onesided
    out = jnp.fft.rfft(frames) if onesided else jnp.fft.fft(frames)
    return jnp.swapaxes(out / math.sqrt(n_fft) if normalized else out, -1, -2)


def istft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None
):
    """Inverse of `stft`: complex (..., frequency, frames) -> (..., time)."""
    hop = hop_length or n_fft // 4
    window = full_window(window, win_length or n_fft, n_fft)
    spectrum = jnp.swapaxes(input, -1, -2) * (math.sqrt(n_fft) if normalized else 1)
    onesided = spectrum.shape[-1] != n_fft if onesided is None else onesided
    frames = (jnp.fft.irfft(spectrum, n_fft) if onesided else jnp.fft.ifft(spectrum).real) * window
    count = frames.shape[-2]
    total, index = n_fft + hop * (count - 1), frame_index(count, hop, n_fft)
    out = jnp.zeros((*frames.shape[:-2], total), frames.dtype).at[..., index].add(frames)
    weight = jnp.zeros(total, window.dtype).at[index].add(window**2)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    out = out[..., start:end] / weight[start:end]
    missing = 0 if length is None else max(length - out.shape[-1], 0)
    return jnp.pad(out, [(0, 0)] * (out.ndim - 1) + [(0, missing)])
