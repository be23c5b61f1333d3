"""Paths of section 4, and their joining to a base URL."""

from __future__ import annotations

SPEECH_PATH = "/tts"
"""Text to speech, by POST."""
VOICES_PATH = "/tts/voices"
"""The catalogue of voices, by GET."""
REALTIME_PATH = "/ws/tts/realtime"
"""Realtime speech, a WebSocket."""
RECOGNITION_PATH = "/asr/srt/audio_llm"
"""Recognition, by POST."""
TRANSLATION_PATH = "/translate/"
"""Translation, by POST."""


def join_url(base_url: str, path: str) -> str:
    """Join a path of section 4 to a base URL, which may have its own path and trailing slashes."""
    return base_url.rstrip("/") + path


def realtime_base(base_url: str) -> str:
    """Return the WebSocket base URL for an HTTP base URL, for use without a configured one."""
    scheme, separator, rest = base_url.partition("://")
    if not separator:
        return f"ws://{base_url}"
    return f"{'wss' if scheme.lower() == 'https' else 'ws'}://{rest}"
