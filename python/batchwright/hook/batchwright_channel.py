"""The worker's end of the workload protocol (src/run/protocol.h): JSON lines over the socket in BATCHWRIGHT_SOCKET."""
import json
import os
import socket

_PROTOCOL = 1


class Channel:
    """Silent once the tuner is gone: a script must not fail because nobody listens."""

    def __init__(self, rank, world_size):
        self.rank, self.world_size = rank, world_size
        self.alive = True
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(os.environ["BATCHWRIGHT_SOCKET"])
        except OSError:
            self.alive = False

    def say(self, **message):
        message.update(rank=self.rank, world_size=self.world_size)
        self.send(json.dumps(message))

    def hello(self, framework, device):
        self.say(type="hello", protocol=_PROTOCOL, framework=framework, device=device, can_resplit=False,
                 process_id=os.getpid())

    def send(self, lines):
        """Whole messages, with newlines between them; none at all is nothing to send."""
        if not self.alive or not lines:
            return
        try:
            self._socket.sendall((lines + "\n").encode())
        except OSError:
            self.alive = False
