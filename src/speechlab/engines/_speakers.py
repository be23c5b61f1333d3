"""Embeddings of speakers: a network that maps a recording to a direction, alike for recordings of one speaker.

The weights are a data file of the package ``resemblyzer`` (Apache-2.0), whose code is not run: it needs torch. The
network is that of L. Wan, Q. Wang, A. Papir, I. Lopez Moreno, Generalized end-to-end loss for speaker verification
(ICASSP 2018): three LSTM layers of 256 over 40 mel bands, a linear layer, and unit length; windows of 1.6 s.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab.engines._mel import MEL_RATE, mel_power
from speechlab.engines._weights.specs import ModelFile, ModelSpec, Part
from speechlab.engines._weights.store import ModelStore

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

SPEAKER_RATE = MEL_RATE
"""Sample rate of the input of :func:`embed_speaker`, in Hz."""

_FILE = "pretrained.pt"
SPEAKERS = ModelSpec(
    name="resemblyzer",
    files=(
        ModelFile(
            _FILE,
            17_090_379,
            "39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
            (Part("resemblyzer", _FILE),),
            in_place=True,
        ),
    ),
    extra="",
    licence="Apache-2.0",
    pip="--no-deps resemblyzer==0.1.4",
)

_SIZE, _BANDS, _LAYERS = 256, 40, 3
# The file is a pickle, then the tensors. Its hash is pinned, so their places are known: nothing is unpickled.
_LINEAR_BIAS_AT, _LINEAR_AT, _LSTM_AT = 6_699, 7_731, 269_883
_FRAME, _HOP = 400, 160
_WINDOW, _STEP = 160, 77  # in frames: 1.6 s, and 1.3 windows a second
_LEAST_COVER = 0.75


class _Layer(NamedTuple):
    """Weights of one LSTM layer, for the gates input, forget, cell and output, in this order."""

    inputs: Floats
    state: Floats
    bias: Floats


def embed_speaker(samples: Floats) -> Floats:
    """Map a recording of one speaker (mono, 16 kHz, at least one sample) to a unit vector of 256 values of 0 or more.

    Windows of 1.6 s are taken every 0.77 s, the last only if the recording fills three quarters of it.
    """
    layers, linear, bias = _weights(ModelStore().ensure(SPEAKERS)[_FILE])
    frames = -(-(len(samples) + 1) // _HOP)
    starts = np.arange(0, max(1, frames - _WINDOW + _STEP + 1), _STEP)
    if len(starts) > 1 and (len(samples) - starts[-1] * _HOP) / (_WINDOW * _HOP) < _LEAST_COVER:
        starts = starts[:-1]
    missing = (int(starts[-1]) + _WINDOW) * _HOP - len(samples)
    padded = np.pad(samples, (0, max(0, missing)))
    mel = mel_power(padded, _BANDS, _FRAME, _HOP).astype(np.float32)
    state = mel[starts[:, np.newaxis] + np.arange(_WINDOW)]
    for layer in layers:
        state = _lstm(state, layer)
    each = np.maximum(state[:, -1] @ linear.T + bias, 0)
    each /= np.linalg.norm(each, axis=1, keepdims=True)
    mean = each.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)


def _lstm(values: Floats, layer: _Layer) -> Floats:
    """The outputs of a layer, shape (windows, frames, 256), from its inputs, shape (windows, frames, inputs)."""
    given = values @ layer.inputs.T + layer.bias
    out = np.empty((*values.shape[:2], _SIZE), dtype=np.float32)
    cell: Floats = np.zeros((len(values), _SIZE), dtype=np.float32)
    hidden = cell
    for frame in range(values.shape[1]):
        gates = given[:, frame] + hidden @ layer.state.T
        new = np.tanh(gates[:, 2 * _SIZE : 3 * _SIZE])
        enter, keep, leave = (
            0.5 + 0.5 * np.tanh(0.5 * gates[:, gate * _SIZE : (gate + 1) * _SIZE]) for gate in (0, 1, 3)
        )
        cell = np.asarray(keep * cell + enter * new, dtype=np.float32)
        hidden = np.asarray(leave * np.tanh(cell), dtype=np.float32)
        out[:, frame] = hidden
    return out


@lru_cache(maxsize=1)
def _weights(path: Path) -> tuple[list[_Layer], Floats, Floats]:
    data = path.read_bytes()

    def floats(at: int, count: int) -> Floats:
        return np.frombuffer(data, dtype="<f4", count=count, offset=at).astype(np.float32)

    gates = 4 * _SIZE
    widths = [_BANDS, *[_SIZE] * (_LAYERS - 1)]
    # First the matrices of all layers, then the two biases of each, which are only ever added.
    flat = floats(_LSTM_AT, sum(gates * (width + _SIZE) for width in widths) + _LAYERS * 2 * gates)
    matrices, biases = np.split(flat, [len(flat) - _LAYERS * 2 * gates])
    layers, at = [], 0
    for width, pair in zip(widths, biases.reshape(_LAYERS, 2, gates), strict=True):
        inputs, state = (
            part.reshape(gates, -1)
            for part in np.split(matrices[at : at + gates * (width + _SIZE)], [gates * width])
        )
        at += gates * (width + _SIZE)
        layers.append(_Layer(inputs, state, pair.sum(axis=0)))
    return layers, floats(_LINEAR_AT, _SIZE * _SIZE).reshape(_SIZE, _SIZE), floats(_LINEAR_BIAS_AT, _SIZE)
