"""A small MCP server over standard input and output: it keeps notes while it runs. The Python that is there is enough for it."""

import json
import sys

NOTES = []
TOOLS = [
    {
        "name": "getNotes",
        "description": "Tells all notes.",
        "inputSchema": {"type": "object"},
    },
    {
        "name": "addNote",
        "description": "Adds a note.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
]


def call(name, arguments):
    if name == "addNote":
        NOTES.append(arguments["text"])
    return {"content": [{"type": "text", "text": "\n".join(NOTES) or "There are no notes."}]}


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        server = {"name": "notes", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        result = call(params["name"], params.get("arguments", {}))
    else:
        # A notice, which nobody answers.
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
