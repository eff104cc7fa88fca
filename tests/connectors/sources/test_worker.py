"""`connectors/sources/worker.py`: frames, and a process that can do nothing else."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sources.worker import FrameBroken, answer, frame, parse_frame

ROOT = Path(__file__).resolve().parents[3]
CONFINED = """
import socket, subprocess, os, sys
from connectors.sources import worker
worker.confine(memory_bytes=400 * 1024 * 1024, cpu_seconds=1)
{deed}
"""


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=3), st.binary(max_size=50))
def test_a_frame_comes_back_as_it_was(head: dict[str, int], body: bytes) -> None:
    assert parse_frame(frame(head, body)) == ({**head, "body_bytes": len(body)}, body)


@pytest.mark.parametrize("cut", [1, 3, 5, 20, -1])
def test_a_frame_that_is_cut_anywhere_is_broken(cut: int) -> None:
    whole = frame({"name": "a.txt"}, b"hello")
    with pytest.raises(FrameBroken):
        parse_frame(whole[:cut])


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xff\xff\xff{}",
        b"\x00\x00\x00\x02[]",
        b"\x00\x00\x00\x02{x",
        b"\x00\x00\x00\x02{}x",
    ],
)
def test_what_is_no_frame_is_broken(raw: bytes) -> None:
    with pytest.raises(FrameBroken):
        parse_frame(raw)


@given(st.binary(max_size=60))
def test_no_bytes_make_parsing_raise_anything_but_frame_broken(raw: bytes) -> None:
    with contextlib.suppress(FrameBroken):
        parse_frame(raw)


def test_an_answer_carries_the_text_beside_its_head() -> None:
    head, body = parse_frame(answer({"name": "a.txt"}, "Grüße".encode()))
    assert (body.decode(), head["source"]["format"]) == ("Grüße", "text")


def test_a_refusal_is_answered_by_name_and_fields() -> None:
    head, body = parse_frame(answer({"name": 7}, b"\xff"))
    assert (head["refused"], body) == ("SourceUndecodable", b"")
    assert head["fields"] == {"name": "the source", "encoding": "UTF-8", "offset": 0}


@pytest.mark.processes
@pytest.mark.parametrize(
    ("deed", "ending"),
    [
        ("socket.create_connection(('127.0.0.1', 9))", "Denied: socket."),
        ("socket.getaddrinfo('localhost', 80)", "Denied: socket."),
        ("subprocess.run(['true'])", "Denied: subprocess.Popen"),
        ("os.system('true')", "Denied: os.system"),
        ("os.fork()", "Denied: os.fork"),
        ("open('/tmp/harmonia-worker-test', 'w')", "Denied: open"),
        ("os.remove('/tmp/harmonia-worker-test')", "Denied: os.remove"),
        ("bytearray(500 * 1024 * 1024)", "MemoryError"),
    ],
)
def test_a_confined_process_is_denied_what_a_conversion_never_needs(deed: str, ending: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONFINED.format(deed=deed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert ending in done.stderr.splitlines()[-1]


@pytest.mark.processes
def test_the_worker_answers_on_its_output_alone() -> None:
    question = frame(
        {"name": "a.html", "memory_bytes": 1 << 30, "cpu_seconds": 20}, b"<p>Hello</p>"
    )
    done = subprocess.run(
        [sys.executable, "-m", "connectors.sources.worker"],
        cwd=ROOT,
        input=question,
        capture_output=True,
        timeout=60,
        check=True,
    )
    head, body = parse_frame(done.stdout)
    assert body == b"Hello"
    assert json.dumps(head["source"]["notes"]) == "[]"
