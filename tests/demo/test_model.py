"""The scripted model carries out its script through every API."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx
import pytest

from bot.demo.model import ModelServer
from bot.demo.model.script import Turn, due, steps
from bot.demo.model.server import APIS

#: Of each API: path, the name of the write tool, and its argument with the file.
WAYS: Mapping[str, tuple[str, str, str]] = {
    "/messages": ("/v1/messages", "Write", "file_path"),
    "/responses": ("/v1/responses", "exec_command", "cmd"),
    "/chat/completions": ("/v1/chat/completions", "write", "filePath"),
    ":generateContent": ("/v1beta/models/m:generateContent", "write_file", "file_path"),
    ":streamGenerateContent": ("/v1beta/models/m:streamGenerateContent", "write_file", "file_path"),
}
HTTP = httpx.Client(trust_env=False)  # Shared: creating one takes long.
PLACE = "Primary working directory: /w/checkout\n"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def body(way: str, prompt: str, tools: Sequence[str], done: int = 0) -> dict[str, Any]:
    """A request with a prompt, after which tools have answered `done` times."""
    if way == "/messages":
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}
        messages: list[Any] = [{"role": "user", "content": PLACE + prompt}, *[result] * done]
        return {"model": "m", "messages": messages, "tools": [{"name": name} for name in tools]}
    if way == "/responses":
        output = {"role": "user", "content": [{"type": "input_text", "text": PLACE + prompt}]}
        items: list[Any] = [output, *[{"type": "function_call_output"}] * done]
        return {"model": "m", "input": items, "tools": [functions(name) for name in tools]}
    if way == "/chat/completions":
        conversation: list[Any] = [
            {"role": "user", "content": PLACE + prompt},
            *[{"role": "tool"}] * done,
        ]
        offered = [{"type": "function", "function": {"name": name}} for name in tools]
        return {"model": "m", "messages": conversation, "tools": offered}
    answers: list[Any] = [{"role": "user", "parts": [{"functionResponse": {}}]}] * done
    contents = [{"role": "user", "parts": [{"text": PLACE + prompt}]}, *answers]
    declared = [{"functionDeclarations": [functions(name) for name in tools]}] if tools else []
    return {"contents": contents, "tools": declared}


def functions(name: str) -> dict[str, str]:
    return {"type": "function", "name": name}


def ask(model: ModelServer, way: str, prompt: str, done: int = 0, **more: object) -> httpx.Response:
    path, tool, _ = WAYS[way]
    return HTTP.post(model.url + path, json={**body(way, prompt, [tool], done), **more})


@pytest.mark.parametrize("way", WAYS)
def test_the_model_writes_a_file_with_the_programs_tool_and_ends_its_turn(
    model: ModelServer, way: str
) -> None:
    prompt = "#do: write note.txt one\\ntwo\n#do: say Bye now."
    _, tool, field = WAYS[way]
    first = ask(model, way, prompt).text
    assert tool in first
    assert field in first
    assert "/w/checkout/note.txt" in first
    last = ask(model, way, prompt, done=1).text
    assert tool not in last
    assert "Bye now." in last or ("Bye " in last and "now." in last)


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_ends_with_its_usage(model: ModelServer, way: str) -> None:
    output = ask(model, way, "#do: say Hello.", stream=True).text
    assert re.search(
        r'(cache_read_input_tokens|cached_tokens|cachedContentTokenCount)": 800', output
    )
    assert "Hel" in output
    assert "lo." in output


@pytest.mark.parametrize("way", WAYS)
def test_the_model_returns_an_error_as_often_as_scripted(model: ModelServer, way: str) -> None:
    prompt = f"#do: error 429 2\n#do: say Better, {way}."
    answers = [ask(model, way, prompt) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [429, 429, 200]
    assert answers[0].headers["retry-after"] == "1"
    assert "scripted 429" in answers[0].text
    assert [recorded.status for recorded in model.requests[-3:]] == [429, 429, 200]


@pytest.mark.parametrize("way", WAYS)
def test_a_side_request_does_not_advance_the_script(model: ModelServer, way: str) -> None:
    output = HTTP.post(model.url + WAYS[way][0], json=body(way, "#do: error 500 9", [])).text
    assert "cripted" in output  # A title, or a summary.
    asked = model.requests[-1].asked
    assert asked is not None
    assert asked.aside


def test_gemini_gets_the_json_schema_it_requests(model: ModelServer) -> None:
    fields = {
        "route": {"type": "string", "enum": ["flash", "pro"]},
        "sure": {"type": "number"},
        "why": {"type": "string"},
    }
    wanted = {"responseJsonSchema": {"properties": fields}}
    answer = ask(model, ":generateContent", "#do: write a b", generationConfig=wanted).json()
    text = "".join(part["text"] for part in answer["candidates"][0]["content"]["parts"])
    assert json.loads(text) == {"route": "flash", "sure": 0.5, "why": "scripted"}


def test_a_program_without_tools_gets_its_edits_as_text(model: ModelServer) -> None:
    conversation = [
        {"role": "system", "content": "Use SEARCH/REPLACE blocks."},
        {"role": "user", "content": "#do: write a.txt one\n#do: bash ls\n#do: say Bye."},
    ]
    asked = {"model": "m", "messages": conversation}
    answer = HTTP.post(f"{model.url}/v1/chat/completions", json=asked).json()
    output = answer["choices"][0]["message"]["content"]
    assert "a.txt\n```\n<<<<<<< SEARCH\n=======\none\n>>>>>>> REPLACE\n```" in output
    assert "```bash\nls\n```" in output
    assert output.endswith("Bye.")


def test_a_connection_is_cut_once_where_scripted(model: ModelServer) -> None:
    prompt = "#do: cut\n#do: say Now whole."
    with pytest.raises(httpx.RemoteProtocolError):
        ask(model, "/messages", prompt, stream=True)
    assert "message_stop" in ask(model, "/messages", prompt, stream=True).text


def test_other_requests_are_recorded_too(model: ModelServer) -> None:
    assert HTTP.get(f"{model.url}/v1/models").status_code == 404
    assert (model.requests[-1].path, model.requests[-1].asked) == ("/v1/models", None)


def test_the_last_message_with_a_script_counts() -> None:
    turns = [
        Turn("user", "#do: bash one"),
        Turn("tool"),
        Turn("user", "#do: think hm\n#do: sleep 2\n#do: bash two <b>"),
        Turn("user", "no script"),
        Turn("assistant", "#do: bash three"),
    ]
    step = due(turns).step
    assert (step.uses, step.think, step.sleep) == ((("bash", "two"),), "hm", 2.0)
    assert due([*turns, Turn("tool")]).step.say == "Done."
    assert due([Turn("user", "Hello?")]).step.say == "Hello from the scripted model."


def test_a_repeated_request_gets_the_same_step() -> None:
    turns = [Turn("user", "#do: bash one")]
    assert due(turns).key == due(list(turns)).key
    assert due([*turns, Turn("tool")]).key != due(turns).key


def test_every_api_is_tested() -> None:
    assert APIS.keys() == WAYS.keys()
    assert steps("#do: dance\n#do: say") == []
