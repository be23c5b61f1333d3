"""DNSMOS: a network that predicts human ratings of the noise and the quality of a recording of speech.

The weights are data files of the package ``speechmos`` (MIT), whose code is not run. Input and output follow
C. K. A. Reddy, V. Gopal, R. Cutler, DNSMOS P.835 (ICASSP 2022) and the same authors' DNSMOS (ICASSP 2021): 16 kHz,
windows of 9.01 s every second, short sounds repeated to fill one, quadratic calibration.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._require import require
from speechlab.engines._mel import MEL_RATE, mel_power
from speechlab.engines._weights.specs import ModelFile, ModelSpec, Part
from speechlab.engines._weights.store import ModelStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

DNSMOS_RATE = MEL_RATE
"""Sample rate of the input of :func:`rate_noise`, in Hz."""

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
    licence="MIT",
)

_WINDOW_S = 9.01
_WINDOW = 144_160
_CUT = 160  # samples that the P.808 network leaves out
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


def rate_noise(samples: NDArray[np.float32]) -> DnsmosScore:
    """Rate a recording of speech.

    Args:
        samples: Mono, 16 kHz, in [-1, 1], shape (frames,); at least one.
    """
    with _lock:  # sessions are made once, in the first thread that needs them
        p835, p808 = _sessions()
    while len(samples) < _WINDOW:
        samples = np.concatenate([samples, samples])
    hops = int(len(samples) // DNSMOS_RATE - _WINDOW_S) + 1
    raw, overall = [], []
    for hop in range(hops):
        # If rounding leaves the window a sample short, the authors' code leaves it out, and so does this code.
        window = samples[hop * DNSMOS_RATE : int((hop + _WINDOW_S) * DNSMOS_RATE)]
        if len(window) < _WINDOW:
            continue
        window = np.asarray(window, dtype=np.float32)
        raw.append(p835.run(None, {"input_1": window[np.newaxis]})[0][0])
        overall.append(p808.run(None, {"input_1": _mel(window[:-_CUT])[np.newaxis]})[0][0][0])
    rated = {
        name: float(np.mean(np.polyval(curve, np.array(raw)[:, place])))
        for place, (name, curve) in enumerate(_CALIBRATION.items())
    }
    return DnsmosScore(**rated, p808=float(np.mean(overall)))


@lru_cache(maxsize=1)
def _sessions() -> tuple[Any, Any]:
    paths = ModelStore().ensure(DNSMOS)
    runtime = require("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    one, other = (
        runtime.InferenceSession(str(paths[file.name]), options, providers=["CPUExecutionProvider"])
        for file in DNSMOS.files
    )
    return one, other


def _mel(window: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mel spectrogram in dB below its maximum, scaled as the P.808 network expects; shape (frames, bands)."""
    power = mel_power(window, _MEL_BANDS, _MEL_FRAME, _MEL_HOP)
    level = 10 * np.log10(np.maximum(power, 1e-10)) - 10 * np.log10(max(float(power.max()), 1e-10))
    return np.asarray((np.maximum(level, level.max() - 80) + 40) / 40, dtype=np.float32)
