"""A small MCP server for tests: `server.py stdio LOG` or `server.py http LOG`, and ways to be a bad one.

Every message that it gets is a line of the file LOG, and so is its process id when it starts. Over HTTP it prints its port.
"""

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOW, LOG = sys.argv[1], sys.argv[2]
OBJECT = {"type": "object"}
NAMES = ["echo", "fail", "picture", "slow", "die", "large", "refuse", "change", "ping", "environment", "stall"]
SESSIONS = set()
CHANGED = []


def log(text):
    with open(LOG, "a") as file:
        file.write(text + "\n")


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def text(of, **more):
    return {"content": [{"type": "text", "text": of}], **more}


def call(name, arguments):
    """The result of a tool, or the code of an error."""
    if name == "echo":
        return text("echo", structuredContent={"got": arguments})
    if name == "fail":
        return text("it did not work", isError=True)
    if name == "picture":
        return {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}, {"type": "text", "text": "seen"}]}
    if name == "slow":
        time.sleep(arguments.get("seconds", 1))
        return text("slow")
    if name == "die":
        os._exit(3)
    if name == "large":
        return text("x" * arguments["bytes"])
    if name == "environment":
        return text(",".join(sorted(os.environ)))
    if name == "change":
        CHANGED.append(1)
        return text("changed")
    if name == "ping":
        return text("pinged")
    return -32602


def answer(message):
    """The answer to a message, or nothing."""
    log(json.dumps(message))
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        version = "1999-01-01" if HOW == "old" else "2025-06-18"
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif method == "tools/list":
        names = NAMES + (["new"] if CHANGED else [])
        page = message.get("params", {}).get("cursor")
        half = names[6:] if page else names[:6] + ["bad name"]
        result = {"tools": [{"name": name, "description": "d " + name, "inputSchema": OBJECT} for name in half]}
        if not page:
            result["nextCursor"] = "2"
    elif method == "tools/call":
        result = call(message["params"]["name"], message["params"]["arguments"])
    else:
        return None
    if isinstance(result, int):
        return {"jsonrpc": "2.0", "id": id, "error": {"code": result, "message": "s3cret reasons"}}
    return {"jsonrpc": "2.0", "id": id, "result": result}


def stdio():
    sys.stderr.write("s3cret on standard error\n" * 20000)
    print("a greeting that is no message", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        name = message.get("params", {}).get("name")
        if name == "ping":
            say({"jsonrpc": "2.0", "id": "q1", "method": "ping"})
        if name == "slow":
            # Others are answered meanwhile, and this one last.
            if os.fork():
                log(json.dumps(message))
                continue
        if name == "stall":
            log(json.dumps(message))
            time.sleep(3600)
        said = answer(message)
        if said:
            say(said)
        if name == "change":
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        if name == "slow":
            os._exit(0)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        log("headers " + json.dumps({name.lower(): value for name, value in self.headers.items()}))
        first = message.get("method") == "initialize"
        if not first and self.headers.get("mcp-session-id") not in SESSIONS:
            return self.end(404, "text/plain", "")
        if message.get("params", {}).get("name") == "refuse":
            return self.end(403, "text/plain", "s3cret reasons")
        if message.get("params", {}).get("name") == "stall":
            SESSIONS.clear()
        said = answer(message)
        if said is None:
            return self.end(202, "text/plain", "")
        session = None
        if first:
            session = "s-%d" % time.time_ns()
            SESSIONS.add(session)
            return self.end(200, "application/json", json.dumps(said), session)
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        self.end(200, "text/event-stream", "id: 1\ndata:\n\ndata: %s\n\nevent: message\ndata: %s\n\n" % (note, json.dumps(said)))

    def end(self, status, kind, body, session=None):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        if session:
            self.send_header("mcp-session-id", session)
        self.end_headers()
        self.wfile.write(body.encode())


log("pid %d" % os.getpid())
if HOW == "http":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
elif HOW in ("stdio", "old"):
    stdio()
elif HOW == "family":
    child = subprocess.Popen(["/bin/sleep", "3600"])
    log("child %d" % child.pid)
    stdio()
elif HOW == "silent":
    time.sleep(3600)
elif HOW == "exits":
    sys.exit(1)
elif HOW == "noise":
    while True:
        print("no message", flush=True)
elif HOW == "endless":
    while True:
        sys.stdout.write("x" * 65536)
elif HOW == "deaf":
    # Greets, and then neither reads nor writes.
    say(answer(json.loads(sys.stdin.readline())))
    time.sleep(3600)
