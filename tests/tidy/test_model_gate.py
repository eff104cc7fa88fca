"""Nothing but the compiler's output reaches a model.

Model libraries are named only in `bot/agent`. There, one module, the gate, may make a message for
a model and start a run, and what it puts into the message is the text of a `Projection`. Modules
that speak a provider's own protocol stand in a list with their reasons: they pass on what the gate
made, or make what a model would answer.
"""

from __future__ import annotations

import ast

import pytest

from tests.tidy.names import calls, references
from tests.tidy.tree import ROOT, Source, functions, report, sample, sources

GATE = "bot/agent/cognition.py"
# Modules that implement a model, and why each may make messages.
MODEL_ADAPTERS: dict[str, str] = {
    "bot/agent/guard.py": "wraps a model: passes the request on, makes what the model answered",
    "bot/agent/gemini.py": "implements a model: hands the request on to the provider's library",
    "bot/agent/offline.py": "implements a model: makes what the offline model answered",
}
# What an agent may be made with: fixed words and limits. No tools, no peers, no history.
AGENT_MAY = frozenset(
    {
        "name",
        "model",
        "instruction",
        "output_schema",
        "include_contents",
        "disallow_transfer_to_parent",
        "disallow_transfer_to_peers",
        "generate_content_config",
    }
)
INSTRUCTIONS = "bot/agent/instructions.py"
INSTRUCTIONS_MAY_IMPORT = frozenset({"__future__", "typing", "runtime.domain.projection"})

LIBRARIES = ("google.adk", "google.genai", "openai", "litellm", "anthropic", "vertexai")
MESSAGES = tuple(
    f"google.genai.types.{name}" for name in ("Content", "Part", "UserContent", "ModelContent")
)
RUNS = frozenset(
    {
        "run_async",
        "run_live",
        "run_debug",
        "generate_content",
        "generate_content_async",
        "generate_content_stream",
    }
)


def library_uses(source: Source) -> list[str]:
    """Uses of a model library."""
    return [
        f"{source.path}:{reference.line}: {reference.name}"
        for reference in references(source)
        if any(reference.within(library) for library in LIBRARIES)
    ]


def message_uses(source: Source) -> list[str]:
    """Where messages to a model are made, and where runs are started."""
    problems = [
        f"{source.path}:{reference.line}: {reference.name}"
        for reference in calls(source)
        if any(reference.within(message) for message in MESSAGES)
    ]
    problems += [
        f"{source.path}:{node.lineno}: {node.func.attr}()"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in RUNS
    ]
    return problems


def _message_name(call: ast.Call) -> str | None:
    """The message type that a call makes, by its last name."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name if any(message.endswith(f".{name}") for message in MESSAGES) else None


def _leaves(node: ast.expr) -> list[ast.expr]:
    """The expressions that a message is filled with, nested messages and lists opened."""
    if isinstance(node, ast.Call) and _message_name(node):
        inner = [*node.args, *(word.value for word in node.keywords if word.arg != "role")]
        return [leaf for part in inner for leaf in _leaves(part)]
    if isinstance(node, ast.List | ast.Tuple):
        return [leaf for part in node.elts for leaf in _leaves(part)]
    return [node]


def foreign_words(source: Source) -> list[str]:
    """Messages in the gate that are filled with anything but the text of a projection."""
    inside = {id(node) for function in functions(source) for node in ast.walk(function)}
    problems = [
        f"{source.path}:{call.lineno}: a message made outside a function of a projection"
        for call in ast.walk(source.tree)
        if isinstance(call, ast.Call) and _message_name(call) and id(call) not in inside
    ]
    for function in functions(source):
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        projections = {
            argument.arg
            for argument in arguments
            if argument.annotation is not None
            and ast.unparse(argument.annotation).rpartition(".")[2] == "Projection"
        }
        accepted = {f"{name}.text" for name in projections}
        problems += [
            f"{source.path}:{leaf.lineno}: {ast.unparse(leaf)} reaches the model"
            for call in ast.walk(function)
            if isinstance(call, ast.Call) and _message_name(call)
            for leaf in _leaves(call)
            if ast.unparse(leaf) not in accepted
        ]
    return problems


def loose_agents(source: Source) -> list[str]:
    """Agents made with anything but fixed words and limits."""
    problems: list[str] = []
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("LlmAgent")):
            continue
        given = {word.arg or "**": ast.unparse(word.value) for word in node.keywords}
        extra = sorted(given.keys() - AGENT_MAY)
        problems += [f"{source.path}:{node.lineno}: an agent with {name}" for name in extra]
        if not given.get("instruction", "").startswith("instruction("):
            problems.append(f"{source.path}:{node.lineno}: an instruction not from {INSTRUCTIONS}")
        if given.get("include_contents") != "'none'":
            problems.append(f"{source.path}:{node.lineno}: an agent that is shown history")
    return problems


@pytest.mark.parametrize(
    "text",
    [
        "from google.genai import types\nx = types.Content()",
        "from google.genai.types import UserContent as U\nx = U('hi')",
        "from google.genai import types\nx = types.Part.from_text(text='hi')",
        "from google.genai import types\nmake = types.UserContent\nx = make('hi')",
        "def f():\n    from google.genai import types as t\n    return t.Part(text='hi')",
        "async def f(runner): return runner.run_async(new_message=1)",
        "async def f(client): await client.aio.models.generate_content(model='m', contents='hi')",
    ],
)
def test_a_second_way_to_a_model_is_found(text: str) -> None:
    assert message_uses(sample(text, "bot/agent/sample.py"))


@pytest.mark.parametrize(
    ("body", "accepted"),
    [
        ("UserContent(projection.text)", True),
        ("types.UserContent(parts=[types.Part(text=projection.text)])", True),
        ("Content(role='user', parts=[Part(text=projection.text)])", True),
        ("UserContent('be nice. ' + projection.text)", False),
        ("UserContent(projection.text, 'and be nice')", False),
        ("UserContent(f'{projection.text}')", False),
        ("UserContent(history.text)", False),
        ("Content(parts=[Part(text=projection.text), Part(text=extra)])", False),
    ],
)
def test_only_a_projection_fills_a_message(body: str, *, accepted: bool) -> None:
    text = f"async def think(self, projection: Projection, history: History): return {body}"
    assert (foreign_words(sample(text, GATE)) == []) is accepted


def test_a_type_that_is_only_named_makes_no_message() -> None:
    text = "from google.genai import types\ndef read(part: types.Part) -> str: return part.text"
    assert message_uses(sample(text, "bot/agent/sample.py")) == []


def test_a_message_outside_any_function_is_found() -> None:
    assert foreign_words(sample("GREETING = UserContent('hello')", GATE))


def test_model_libraries_are_named_only_where_agents_are() -> None:
    problems = [
        line
        for source in sources()
        if not source.path.startswith("bot/agent/")
        for line in library_uses(source)
    ]
    assert not problems, report(problems)


def test_one_module_makes_messages_and_starts_runs() -> None:
    scanned = [source for source in sources("bot/agent") if source.path != GATE]
    problems = [
        line
        for source in scanned
        if source.path not in MODEL_ADAPTERS
        for line in message_uses(source)
    ]
    assert not problems, report(problems)


def test_the_gate_passes_on_the_projection_and_nothing_else() -> None:
    gate = next((source for source in sources("bot/agent") if source.path == GATE), None)
    assert gate is not None, f"{GATE} is the one way to a model"
    assert message_uses(gate), f"{GATE} makes no message: is the way to the model elsewhere?"
    problems = foreign_words(gate)
    assert not problems, report(problems)


def test_every_model_adapter_exists_and_says_why() -> None:
    for path, reason in MODEL_ADAPTERS.items():
        assert (ROOT / path).is_file(), path
        assert len(reason.split()) > 2, path


@pytest.mark.parametrize(
    ("words", "accepted"),
    [
        ("instruction=instruction(agent), include_contents='none'", True),
        ("instruction=instruction(agent)", False),
        ("instruction=f'Help {name}', include_contents='none'", False),
        ("instruction=instruction(agent), include_contents='none', tools=[run]", False),
        ("instruction=instruction(agent), include_contents='none', sub_agents=[a]", False),
        ("**settings", False),
    ],
)
def test_an_agent_gets_fixed_words_and_nothing_else(words: str, *, accepted: bool) -> None:
    assert (loose_agents(sample(f"agent = LlmAgent({words})")) == []) is accepted


def test_every_agent_gets_fixed_words_and_nothing_else() -> None:
    scanned = sources("bot/agent")
    assert any("LlmAgent(" in source.text for source in scanned)
    problems = [line for source in scanned for line in loose_agents(source)]
    assert not problems, report(problems)


def test_instructions_are_constants_of_the_code() -> None:
    source = next(item for item in sources("bot/agent") if item.path == INSTRUCTIONS)
    modules = {
        node.module for node in ast.walk(source.tree) if isinstance(node, ast.ImportFrom)
    } | {
        alias.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert modules <= INSTRUCTIONS_MAY_IMPORT
    made = [node for node in ast.walk(source.tree) if isinstance(node, ast.JoinedStr)]
    assert made == [], "an instruction is written out, never filled in"
    assert "{" not in "".join(
        node.value
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ), "ADK would fill braces from session state"
