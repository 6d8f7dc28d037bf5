"""A browser's session with a server: pages drawn over its WebSocket, without a browser."""

import contextlib

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

PATIENCE_S = 120.0


class PageSession:
    """One session, which draws one page after the other."""

    def __init__(self, socket):
        self._socket = socket

    def draw(self, page="", query=""):
        """Open a page; return all that is sent for it, as text, and the exceptions among it."""
        asked = BackMsg()
        asked.rerun_script.page_name, asked.rerun_script.query_string = page, query
        self._socket.send(asked.SerializeToString())
        sent, errors, message = b"", [], ForwardMsg()
        while not message.HasField("script_finished"):
            sent += (received := self._socket.recv(PATIENCE_S))
            message = ForwardMsg.FromString(received)
            if message.delta.new_element.HasField("exception"):
                errors.append(message.delta.new_element.exception.message)
        return sent.decode("utf-8", "replace"), errors


@contextlib.contextmanager
def page_session(url, **headers):
    """Open a session until the end of the block. headers: as a proxy adds them."""
    address = f"{url.replace('http', 'ws', 1)}/_stcore/stream"
    with connect(
        address, origin=url, subprotocols=["streamlit"], max_size=None, proxy=None,
        additional_headers=headers,
    ) as socket:  # fmt: skip
        yield PageSession(socket)
