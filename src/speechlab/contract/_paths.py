"""Addresses of section 4, and how they join a base URL."""

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
    """Join a base URL, which may have a path and trailing slashes of its own, and a path of section 4.

    Example:
        >>> join_url("https://speech.example/api/", "/tts")
        'https://speech.example/api/tts'
    """
    return base_url.rstrip("/") + path


def realtime_base(base_url: str) -> str:
    """Return the WebSocket base URL that belongs to an HTTP base URL when no other is configured.

    Example:
        >>> realtime_base("https://speech.example/api")
        'wss://speech.example/api'
    """
    scheme, separator, rest = base_url.partition("://")
    if not separator:
        return f"ws://{base_url}"
    return f"{'wss' if scheme.lower() == 'https' else 'ws'}://{rest}"
