"""Networks that rate the noise of recordings (DNSMOS) and compare speakers (embeddings).

The weights are data files of the packages ``speechmos`` (MIT) and ``resemblyzer`` (Apache-2.0, needs torch), whose
code is not run.

DNSMOS predicts human ratings of noise and quality. Input and output follow C. K. A. Reddy, V. Gopal, R. Cutler,
DNSMOS P.835 (ICASSP 2022) and the same authors' DNSMOS (ICASSP 2021): 16 kHz, windows of 9.01 s every second, short
sounds repeated to fill one, quadratic calibration.

The other network maps a recording to a direction, alike for recordings of one speaker: L. Wan, Q. Wang, A. Papir,
I. Lopez Moreno, Generalized end-to-end loss for speaker verification (ICASSP 2018): three LSTM layers of 256 over
40 mel bands, a linear layer, and unit length; windows of 1.6 s. Mel spectrograms are as librosa computes them.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._require import require
from speechlab.engines._weights.specs import ModelFile, ModelSpec, Part
from speechlab.engines._weights.store import ModelStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# Sample rate of the input, in Hz.
MEL_RATE = 16_000


def compute_mel_power(samples: NDArray[np.float32], bands: int, frame: int, hop: int) -> NDArray[np.float64]:
    """Power in mel bands of frames centered on every ``hop``-th sample; shape (frames, bands)."""
    padded = np.pad(samples.astype(np.float64), frame // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, frame)[::hop]
    taper = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(frame) / frame)
    spectrum = np.square(np.abs(np.fft.rfft(frames * taper, axis=1)))
    return np.asarray(spectrum @ _build_mel_weights(bands, frame).T)


@lru_cache(maxsize=4)
def _build_mel_weights(bands: int, frame: int) -> NDArray[np.float64]:
    """Triangular filters of equal area on Slaney's mel scale (linear below 1 kHz, then logarithmic)."""
    top = 15 + np.log(MEL_RATE / 2 / 1000) / (np.log(6.4) / 27)
    mels = np.linspace(0, top, bands + 2)
    edges = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (mels - 15)))
    bins = np.arange(frame // 2 + 1) * MEL_RATE / frame
    rising = (bins - edges[:-2, np.newaxis]) / np.diff(edges)[:-1, np.newaxis]
    falling = (edges[2:, np.newaxis] - bins) / np.diff(edges)[1:, np.newaxis]
    heights = 2 / (edges[2:] - edges[:-2])
    return np.asarray(np.maximum(0, np.minimum(rising, falling)) * heights[:, np.newaxis])


# Sample rate of the input of :func:`embed_speaker`, in Hz.
SPEAKER_RATE = MEL_RATE

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
    license="Apache-2.0",
    pip="--no-deps resemblyzer==0.1.4",
)

_SIZE, _BANDS, _LAYERS = 256, 40, 3
# The file is a pickle, then the tensors. Its hash is pinned, so their places are known: nothing is unpickled.
_LINEAR_BIAS_AT, _LINEAR_AT, _LSTM_AT = 6_699, 7_731, 269_883
_FRAME, _HOP = 400, 160
_WINDOW, _STEP = 160, 77  # in frames: 1.6 s, and 1.3 windows a second


class _Layer(NamedTuple):
    """Weights of one LSTM layer, for the gates input, forget, cell and output, in this order."""

    inputs: Floats
    state: Floats
    bias: Floats


def embed_speaker(samples: Floats) -> Floats:
    """Map a recording of one speaker (mono, 16 kHz, at least one sample) to a unit vector of 256 values of 0 or more.

    As in Resemblyzer, windows of 1.6 s are taken every 0.77 s, the last only if three quarters of it are filled.
    """
    layers, linear, bias = _load_lstm_weights()
    frames = -(-(len(samples) + 1) // _HOP)
    starts = np.arange(0, max(1, frames - _WINDOW + _STEP + 1), _STEP)
    if len(starts) > 1 and (len(samples) - starts[-1] * _HOP) / (_WINDOW * _HOP) < 0.75:
        starts = starts[:-1]
    shortfall = (int(starts[-1]) + _WINDOW) * _HOP - len(samples)
    padded = np.pad(samples, (0, max(0, shortfall)))
    mel = compute_mel_power(padded, _BANDS, _FRAME, _HOP).astype(np.float32)
    state = mel[starts[:, np.newaxis] + np.arange(_WINDOW)]
    for layer in layers:
        state = _run_lstm_layer(state, layer)
    each = np.maximum(state[:, -1] @ linear.T + bias, 0)
    each /= np.linalg.norm(each, axis=1, keepdims=True)
    mean = each.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)


def _run_lstm_layer(values: Floats, layer: _Layer) -> Floats:
    """The outputs of a layer, shape (windows, frames, 256), from its inputs, shape (windows, frames, inputs)."""
    weighted = (values @ layer.inputs.T + layer.bias).reshape(*values.shape[:2], 4, _SIZE)
    # Gate by gate, because of larger products BLAS makes several threads wait for each other, at ten times the cost.
    of_state = layer.state.reshape(4, _SIZE, _SIZE).transpose(0, 2, 1)
    out = np.empty((*values.shape[:2], _SIZE), dtype=np.float32)
    cell: Floats = np.zeros((len(values), _SIZE), dtype=np.float32)
    hidden = cell
    for frame in range(values.shape[1]):
        enter, keep, new, leave = weighted[:, frame].swapaxes(0, 1) + hidden @ of_state
        cell = np.asarray(
            _compute_sigmoid(keep) * cell + _compute_sigmoid(enter) * np.tanh(new), dtype=np.float32
        )
        hidden = np.asarray(_compute_sigmoid(leave) * np.tanh(cell), dtype=np.float32)
        out[:, frame] = hidden
    return out


def _compute_sigmoid(values: Floats) -> Floats:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * values))


@lru_cache(maxsize=1)
def _load_lstm_weights() -> tuple[list[_Layer], Floats, Floats]:
    data = ModelStore().ensure_files(SPEAKERS)[_FILE].read_bytes()

    def read_floats(at: int, count: int) -> Floats:
        return np.frombuffer(data, dtype="<f4", count=count, offset=at).astype(np.float32)

    gates = 4 * _SIZE
    widths = [_BANDS, *[_SIZE] * (_LAYERS - 1)]
    # First the matrices of all layers, then the two biases of each, which are only ever added.
    flat = read_floats(_LSTM_AT, sum(gates * (width + _SIZE) for width in widths) + _LAYERS * 2 * gates)
    matrices, biases = np.split(flat, [len(flat) - _LAYERS * 2 * gates])
    layers, at = [], 0
    for width, pair in zip(widths, biases.reshape(_LAYERS, 2, gates), strict=True):
        inputs, state = (
            part.reshape(gates, -1)
            for part in np.split(matrices[at : at + gates * (width + _SIZE)], [gates * width])
        )
        at += gates * (width + _SIZE)
        layers.append(_Layer(inputs, state, pair.sum(axis=0)))
    return (
        layers,
        read_floats(_LINEAR_AT, _SIZE * _SIZE).reshape(_SIZE, _SIZE),
        read_floats(_LINEAR_BIAS_AT, _SIZE),
    )


# Sample rate of the input of :func:`compute_dnsmos`, in Hz.
DNSMOS_RATE = MEL_RATE

DNSMOS = ModelSpec(
    name="dnsmos",
    files=(
        ModelFile(
            "sig_bak_ovr.onnx",
            1_157_965,
            "269fbebdb513aa23cddfbb593542ecc540284a91849ac50516870e1ac78f6edd",
            (Part("speechmos", "dnsmos_models/sig_bak_ovr.onnx"),),
            in_place=True,
        ),
        ModelFile(
            "model_v8.onnx",
            224_860,
            "9246480c58567bc6affd4200938e77eef49468c8bc7ed3776d109c07456f6e91",
            (Part("speechmos", "dnsmos_models/model_v8.onnx"),),
            in_place=True,
        ),
    ),
    extra="quality",
    license="MIT",
)

_DNSMOS_WINDOW_S = 9.01
_DNSMOS_WINDOW = 144_160
_P808_CUT = 160  # samples that the P.808 network leaves out
_MEL_BANDS, _MEL_FRAME, _MEL_HOP = 120, 321, 160
_CALIBRATION = {
    "signal": (-0.08397278, 1.22083953, 0.0052439),
    "background": (-0.13166888, 1.60915514, -0.39604546),
    "overall": (-0.06766283, 1.11546468, 0.04602535),
}
_lock = threading.Lock()


class DnsmosScore(NamedTuple):
    """Ratings from 1 (bad) to 5 (excellent), means over the windows."""

    signal: float
    background: float
    overall: float
    p808: float


def compute_dnsmos(samples: NDArray[np.float32]) -> DnsmosScore:
    """Rate a recording of speech.

    Args:
        samples: Mono, 16 kHz, in [-1, 1], shape (frames,); at least one.
    """
    with _lock:  # sessions are made once, in the first thread that needs them
        p835, p808 = _load_dnsmos_sessions()
    while len(samples) < _DNSMOS_WINDOW:
        samples = np.concatenate([samples, samples])
    hops = int(len(samples) // DNSMOS_RATE - _DNSMOS_WINDOW_S) + 1
    raw, overall = [], []
    for hop in range(hops):
        # If rounding leaves the window a sample short, the authors' code leaves it out, and so does this code.
        window = samples[hop * DNSMOS_RATE : int((hop + _DNSMOS_WINDOW_S) * DNSMOS_RATE)]
        if len(window) < _DNSMOS_WINDOW:
            continue
        window = np.asarray(window, dtype=np.float32)
        raw.append(p835.run(None, {"input_1": window[np.newaxis]})[0][0])
        overall.append(
            p808.run(None, {"input_1": _compute_mel_spectrogram(window[:-_P808_CUT])[np.newaxis]})[0][0][0]
        )
    rated = {
        name: float(np.mean(np.polyval(curve, np.array(raw)[:, place])))
        for place, (name, curve) in enumerate(_CALIBRATION.items())
    }
    return DnsmosScore(**rated, p808=float(np.mean(overall)))


@lru_cache(maxsize=1)
def _load_dnsmos_sessions() -> tuple[Any, Any]:
    paths = ModelStore().ensure_files(DNSMOS)
    runtime = require("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    p835, p808 = (
        runtime.InferenceSession(str(paths[file.name]), options, providers=["CPUExecutionProvider"])
        for file in DNSMOS.files
    )
    return p835, p808


def _compute_mel_spectrogram(window: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mel spectrogram in dB below its maximum, scaled as the P.808 network expects; shape (frames, bands)."""
    power = compute_mel_power(window, _MEL_BANDS, _MEL_FRAME, _MEL_HOP)
    level = 10 * np.log10(np.maximum(power, 1e-10)) - 10 * np.log10(max(float(power.max()), 1e-10))
    return np.asarray((np.maximum(level, level.max() - 80) + 40) / 40, dtype=np.float32)
