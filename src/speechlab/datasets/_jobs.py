"""Jobs of vendors: a reply of one that failed or is not finished is no transcript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speechlab.errors import InvalidRequestError

_STATUS = ("status", "state", "jobstatus", "transcriptionjobstatus", "recognitionstatus")
# Statuses of jobs with a transcript, in lower case without separators; Azure's of silence have an empty one.
_FINISHED = frozenset(
    {"complete", "completed", "done", "endofdictation", "finished", "nomatch", "ok", "succeeded", "success",
     "successful", "transcribed", "initialsilencetimeout", "babbletimeout"}
)  # fmt: skip
_REASONS = (
    "error", "errors", "err_msg", "error_message", "errormessage", "failurereason", "failure_reason",
    "failure_detail", "failure", "detail", "message", "reason", "properties",
)  # fmt: skip
_ERRORS = ("error", "err_code", "err_msg", "error_message", "errormessage", "failurereason", "failure_detail")
_WRAPPERS = ("TranscriptionJob", "transcriptionjob", "job", "transcription_job")
_HTTP_REDIRECT = 300


def check_job_finished(reply: Mapping[str, Any]) -> None:
    """Raise an error if the reply is that of a job which failed or is not finished, with the vendor's words."""
    wrapped = next((reply[name] for name in _WRAPPERS if isinstance(reply.get(name), Mapping)), None)
    for part in (reply, wrapped):
        if part is None:
            continue
        fields = {str(name).lower(): value for name, value in part.items()}
        status = next((fields[name] for name in _STATUS if fields.get(name) is not None), None)
        words = next(filter(None, (_find_error_text(fields.get(name)) for name in _REASONS)), "")
        if status is not None and not _is_finished(status):
            what = f"its job has the status {status!r:.60}"
        elif any(fields.get(name) for name in _ERRORS):
            what = "it is an error"
        else:
            continue
        message = f"the reply is no transcript: {what}" + (f": {words:.300}" if words else "")
        raise InvalidRequestError(message, parameter="reply")


def _is_finished(status: object) -> bool:
    if isinstance(status, bool):
        return status
    if isinstance(status, int):
        return 0 <= status < _HTTP_REDIRECT
    if not isinstance(status, str):
        return True  # not the status of a job
    return "".join(filter(str.isalnum, status.lower())) in _FINISHED


def _find_error_text(value: object) -> str:
    """Return the vendor's words in the field of an error."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Mapping):
        fields = {str(name).lower(): part for name, part in value.items()}
        return next(filter(None, (_find_error_text(fields.get(name)) for name in _REASONS)), "")
    if isinstance(value, list) and value:
        return _find_error_text(value[0])
    return ""


def unwrap_google_result(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the result of one of Google's long-running operations; other replies as they are."""
    if reply.get("done") is False or ("done" not in reply and "@type" in (reply.get("metadata") or ())):
        raise InvalidRequestError("the reply is no transcript: its job is not finished", parameter="reply")
    response = reply.get("response")
    return response if isinstance(response, Mapping) and "results" not in reply else reply
