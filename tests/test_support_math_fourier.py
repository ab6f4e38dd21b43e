"""Windows, and short-time Fourier transforms there and back."""
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from math_common import agree, floats

from migrate.support.jax import fourier

WINDOWS = {
    "hann": {}, "hamming": {}, "blackman": {}, "nuttall": {}, "bartlett": {}, "cosine": {},
    "kaiser": {"beta": 8.0}, "gaussian": {"std": 2.0}, "exponential": {"tau": 2.0},
    "general_hamming": {"alpha": 0.6}, "general_cosine": {"a": [0.5, 0.3, 0.2]},
}
SOUND = floats(2, 100)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 12])
def test_window(name, sym, size):
    theirs = getattr(torch.signal.windows, name)(size, sym=sym, dtype=torch.float64, **WINDOWS[name])
    ours = getattr(fourier, name)(size, sym=sym, **WINDOWS[name])
    assert ours.dtype == jnp.float32
    np.testing.assert_allclose(ours, theirs.numpy(), atol=2e-7)


@pytest.mark.parametrize(
    "options",
    [
        {"n_fft": 16}, {"n_fft": 16, "hop_length": 5, "win_length": 12, "normalized": True}, {"n_fft": 15, "center": False},
        {"n_fft": 16, "onesided": False}, {"n_fft": 16, "pad_mode": "constant"}, {"n_fft": 16, "pad_mode": "replicate"},
    ],
    ids=str,
)
def test_there_and_back(options):
    length = options.get("win_length", options["n_fft"])
    window, their_window = fourier.hamming(length, sym=False), torch.hamming_window(length)

    def ours(x):
        out = fourier.stft(x, window=window, **options)
        return jnp.stack([out.real, out.imag], -1)

    def theirs(x):
        return torch.view_as_real(torch.stft(x, window=their_window, return_complex=True, **options))

    agree(ours, theirs, SOUND)
    back = {k: v for k, v in options.items() if k != "pad_mode"}
    spectrum = fourier.stft(SOUND, window=window, **options)
    want = torch.istft(torch.from_numpy(np.array(spectrum)), window=their_window, **back)
    got = fourier.istft(spectrum, window=window, **back)
    np.testing.assert_allclose(got, want.numpy(), atol=1e-5)
    np.testing.assert_allclose(got, SOUND[:, : got.shape[-1]], atol=1e-5)


def test_length_and_default_window():
    spectrum = fourier.stft(SOUND, 16)
    want = torch.istft(torch.from_numpy(np.array(spectrum)), 16, length=90, window=torch.ones(16))
    np.testing.assert_allclose(fourier.istft(spectrum, 16, length=90), want.numpy(), atol=1e-5)
    assert fourier.stft(SOUND.astype(np.complex64), 16).shape[-2] == 16
    whole = torch.stft(torch.from_numpy(SOUND), 16, window=torch.ones(16), return_complex=True).numpy()
    np.testing.assert_allclose(spectrum, whole, atol=1e-5)
