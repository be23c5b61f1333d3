"""Translation: whole, and as it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.client._api.voice_calls import VoiceCalls
from speechlab.client._memory.memory import answered
from speechlab.client._operations.requests import translation_call
from speechlab.client._operations.translation import Translation, kept_translation, read_translation
from speechlab.client._streams.translation import AsyncTranslationStream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from speechlab.client._operations.call import Call


class TranslationCalls(VoiceCalls):
    """The part of :class:`AsyncClient` that translates."""

    async def translate(
        self,
        text: str,
        *,
        source_lang: str,
        target_lang: str,
        keywords: Iterable[str] = (),
        context: str | None = None,
        model: str | None = None,
    ) -> Translation:
        """Translate a text (section 4.5 of the contract).

        Args:
            text: What to translate, at most 10,000 characters.
            source_lang: Code of its language, for example ``"ja"``.
            target_lang: Code of the language wanted, for example ``"en"``.
            keywords: Terms to preserve: at most 20, at most 100 bytes of UTF-8 each.
            context: Text that helps to understand and is not translated; at most 2,000 characters.
            model: Model id; None is the service's default.

        Raises:
            InvalidRequestError: A field breaks a rule of the contract; nothing was sent.
            APIError: The service answered with an error.
            APIConnectionError: No answer came.
            ContractError: The answer holds no translation.
        """
        call = self._translation(text, source_lang, target_lang, keywords, context, model, stream=False)
        answer = await answered(self._core, call, await self._question(call))
        result = read_translation(answer.reply, source_lang, target_lang)
        if answer.fresh:
            usage = result.usage
            self._core.ledger.add(
                calls=1,
                translated_chars=len(text),
                prompt_tokens=usage.prompt_tokens if usage else 0,
                completion_tokens=usage.completion_tokens if usage else 0,
            )
            await answer.keep(kept_translation(result))
        return result

    def stream_translation(
        self,
        text: str,
        *,
        source_lang: str,
        target_lang: str,
        keywords: Iterable[str] = (),
        context: str | None = None,
        model: str | None = None,
    ) -> AsyncTranslationStream:
        """Translate a text, and give the translation as it is made.

        Use the result as a context manager; leaving it early stops the service's work.

        Args:
            text: What to translate, at most 10,000 characters.
            source_lang: Code of its language, for example ``"ja"``.
            target_lang: Code of the language wanted, for example ``"en"``.
            keywords: Terms to preserve: at most 20, at most 100 bytes of UTF-8 each.
            context: Text that helps to understand and is not translated; at most 2,000 characters.
            model: Model id; None is the service's default.

        Returns:
            A stream of ``TranslationChunk``; its ``text`` is the translation so far, and ``translation`` the whole
            once it has ended.

        Raises:
            InvalidRequestError: A field breaks a rule of the contract; nothing is sent.
        """
        call = self._translation(text, source_lang, target_lang, keywords, context, model, stream=True)
        return AsyncTranslationStream(self._core, call, (source_lang, target_lang), len(text), self._question)

    def _translation(
        self,
        text: str,
        source_lang: str,
        target_lang: str,
        keywords: Iterable[str],
        context: str | None,
        model: str | None,
        *,
        stream: bool,
    ) -> Call:
        fields = {
            "text": text,
            "source_lang": source_lang,
            "target_lang": target_lang,
            "context": context,
            "model": model,
        }
        return translation_call(fields, keywords, stream=stream, timeout=self._settings.timeout)
