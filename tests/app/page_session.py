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
        """Open a page; return all messages of it, and those among them that are exceptions."""
        asked = BackMsg()
        asked.rerun_script.page_name, asked.rerun_script.query_string = page, query
        self._socket.send(asked.SerializeToString())
        sent, errors = [], []
        while not (sent and sent[-1].HasField("script_finished")):
            message = ForwardMsg.FromString(self._socket.recv(PATIENCE_S))
            sent.append(message)
            if message.delta.new_element.WhichOneof("type") == "exception":
                errors.append(message.delta.new_element.exception)
        return sent, errors


@contextlib.contextmanager
def page_session(url, **headers):
    """Open a session until the end of the block. headers: as a proxy adds them."""
    address = f"{url.replace('http', 'ws', 1)}/_stcore/stream"
    with connect(
        address, origin=url, subprotocols=["streamlit"], max_size=None, proxy=None,
        additional_headers=headers,
    ) as socket:  # fmt: skip
        yield PageSession(socket)
