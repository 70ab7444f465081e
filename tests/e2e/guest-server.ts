/** An HTTP and WebSocket server for the guest, in plain Python: `server.py ADDRESS PORT`. */
export const GUEST_SERVER = `
import base64, hashlib, json, struct, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlparse

last_close = [None]
BLOCK = b"z" * (1024 * 1024)

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def text(self, body, status=200):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def chunk(self, data):
        self.wfile.write(b"%x\\r\\n" % len(data) + data + b"\\r\\n")

    def do_GET(self):
        url = urlparse(self.path)
        query = {k: v[0] for k, v in parse_qs(url.query).items()}
        if url.path == "/hello":
            self.text("hello")
        elif url.path == "/headers":
            self.text(json.dumps({k.lower(): v for k, v in self.headers.items()}))
        elif url.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", query["to"])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif url.path == "/body":
            self.body(int(query["mb"]), query["framing"])
        elif url.path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b"x" * 1000)
            self.wfile.flush()
            self.close_connection = True
        elif url.path == "/drip":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while True:
                self.chunk(b"drop\\n")
                time.sleep(0.1)
        elif url.path == "/last-close":
            self.text(str(last_close[0]))
        elif url.path == "/ws":
            self.websocket()
        else:
            self.text("path " + self.path)

    def body(self, mb, framing):
        self.send_response(200)
        if framing == "length":
            self.send_header("Content-Length", str(mb * len(BLOCK)))
        elif framing == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        for _ in range(mb):
            if framing == "chunked":
                self.chunk(BLOCK)
            else:
                self.wfile.write(BLOCK)
        if framing == "chunked":
            self.wfile.write(b"0\\r\\n\\r\\n")

    def do_POST(self):
        digest = hashlib.sha256()
        if self.headers.get("Transfer-Encoding") == "chunked":
            while True:
                size = int(self.rfile.readline(), 16)
                digest.update(self.rfile.read(size))
                self.rfile.readline()
                if size == 0:
                    break
        else:
            left = int(self.headers.get("Content-Length", 0))
            while left:
                data = self.rfile.read(min(left, 65536))
                digest.update(data)
                left -= len(data)
        self.text(digest.hexdigest())

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept)
        if "Sec-WebSocket-Protocol" in self.headers:
            self.send_header("Sec-WebSocket-Protocol", self.headers["Sec-WebSocket-Protocol"])
        self.end_headers()
        self.close_connection = True
        parts = []
        while True:
            head = self.rfile.read(2)
            if len(head) < 2:
                return
            opcode, size = head[0] & 15, head[1] & 127
            if size == 126:
                size = struct.unpack(">H", self.rfile.read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.rfile.read(8))[0]
            mask = self.rfile.read(4)
            data = self.rfile.read(size)
            repeated = (mask * (size // 4 + 1))[:size]
            data = (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
            if opcode == 8:
                last_close[0] = struct.unpack(">H", data[:2])[0]
                self.frame(8, data)
                return
            if opcode == 9:
                self.frame(10, data)
                continue
            if opcode == 10:
                continue
            kind = opcode or kind
            parts.append(data)
            if head[0] & 128:
                self.frame(kind, b"".join(parts))
                parts = []

    def frame(self, opcode, data):
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 128 | opcode, size)
        elif size < 65536:
            head = struct.pack(">BBH", 128 | opcode, 126, size)
        else:
            head = struct.pack(">BBQ", 128 | opcode, 127, size)
        self.wfile.write(head + data)

class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
`;
