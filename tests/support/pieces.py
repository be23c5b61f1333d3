"""A service that answers in exactly the pieces that a test names, without a socket that joins them."""

from contextlib import contextmanager

import httpx2

from speechlab.client import Client


@contextmanager
def answer_in_pieces():
    """Give a client, and a function that says in which pieces its next call is answered."""
    replies = []

    async def send(pieces):
        for piece in pieces:
            yield piece

    def answer(pieces, content_type="audio/wav"):
        replies[:] = [(pieces, content_type)]

    def reply(_):
        pieces, content_type = replies.pop()
        return httpx2.Response(200, headers={"content-type": content_type}, content=send(pieces))

    with Client("http://127.0.0.1:9", transport=httpx2.MockTransport(reply), max_retries=0) as lab:
        yield lab, answer
