"""A TCP forwarder between browser and node whose connections a check can cut."""

import socket
import threading


class Forwarder:
    """Forwards connections to a port of this machine until it is cut."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.is_cut = False
        self.open = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            browser, _ = self.listener.accept()
            if self.is_cut:
                browser.close()
                continue
            node = socket.create_connection(("127.0.0.1", self.target))
            self.open += [browser, node]
            for source, sink in [(browser, node), (node, browser)]:
                threading.Thread(target=self.copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def copy(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """Drops every connection and refuses new ones."""
        self.is_cut = True
        for end in self.open:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.open.clear()

    def mend(self):
        self.is_cut = False
