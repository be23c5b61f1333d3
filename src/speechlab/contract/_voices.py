"""The voice catalogue (sections 2.1 and 4.2)."""

from __future__ import annotations

import re

from pydantic import Field

from speechlab.contract._base import ReplyModel


class Voice(ReplyModel):
    """A voice of the catalogue (section 2.1).

    Attributes:
        id: UUID, the value of ``voice_id``.
        description: Free text for people.
        language: Supported language or languages, as free text.
        gender: ``Male``, ``Female`` or ``Neutral``; other values are kept unchanged.
        formats: Supported output formats.
        sample_rates: Supported output rates in Hz, or None if the catalogue lists none, which means unknown.
        streaming: True if at least one format can stream; False means that none can.

    Example:
        >>> Voice(id="53d1acf3-1ef1-5583-bcf8-dda6184fe486", description="Calm: reads books").short_name
        'Calm'
    """

    id: str
    description: str = ""
    language: str = ""
    gender: str = ""
    formats: tuple[str, ...] = ()
    sample_rates: tuple[int, ...] | None = None
    streaming: bool = False

    @property
    def short_name(self) -> str:
        """Short name for people: the last or first part of the description, or else the id."""
        if found := re.search(r"\(([^()]+)\)\s*$", self.description):
            return found[1][:40]
        return re.split(r"[:;,.—]", self.description, maxsplit=1)[0].strip()[:40] or self.id[:8]


class VoiceList(ReplyModel):
    """Reply of ``GET /tts/voices`` (section 4.2).

    Example:
        >>> len(VoiceList.parse({"voices": []}).voices), len(VoiceList.parse([]).voices)
        (0, 0)
    """

    voices: tuple[Voice, ...] = Field()

    @classmethod
    def parse(cls, value: object) -> VoiceList:
        """Read the catalogue in either documented form: an object with ``voices``, or a bare array.

        Raises:
            ContractError: The value has neither form.
        """
        return super().parse({"voices": value} if isinstance(value, list) else value)
