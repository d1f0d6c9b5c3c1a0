"""Docstrings say in an imperative sentence what is done, in the field's words, in small files."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = Path(__file__).resolve().parents[2] / "server/ovchat_server"
FILES = sorted(path.relative_to(SERVER) for path in SERVER.rglob("*.py"))
MAX_LINES = 300
# What a docstring may begin with. A verb that is missing here is added.
VERBS = """
    Add Admit Allow Answer Append Apply Ask Assemble Assign Attach Become Begin Bind Block Bound
    Build Call Cancel Change Check Choose Clear Close Collect Combine Compile Complete Compute
    Configure Connect Continue Convert Copy Count Create Cut Decide Declare Decode Deliver Describe
    Detach Detokenize Digest Discard Do Drain Draw Drop Encode End Enter Escape Estimate Execute
    Exit Expand Expect Fail Feed Fetch Fill Filter Find Finish Flush Fold Follow Forget Format Free
    Generate Get Give Guess Handle Have Hold Ignore Implement Import Initialize Insert Install
    Interrupt Iterate Join Keep Kill Learn Leave Let Limit List Listen Load Locate Lock Log Look
    Make Map Mark Mask Match Measure Merge Move Name Normalize Note Notify Offer Open Parse Pass
    Pause Pick Plan Pop Post Preempt Prefill Prepare Print Process Publish Put Queue Raise Read
    Receive Record Refuse Register Reject Release Remember Remove Render Repeat Replace Report
    Request Reserve Reset Resolve Restart Restore Restrict Resume Retrieve Retry Return Round Run
    Sample Say Schedule Score See Select Send Serve Set Share Shorten Show Shut Signal Skip Sort
    Speak Split Start Step Stop Store Stream Strip Submit Supervise Surround Switch Take Tell
    Tokenize Track Translate Truncate Try Turn Undo Update Use Validate Verify Wait Wake Watch Work
    Wrap Write Yield
"""
# Words that once stood for something else in names; see docs/glossary.md for what does now.
PRIVATE_WORDS = {
    "aside",
    "asker",
    "laid",
    "leaving",
    "mixed",
    "news",
    "nobody",
    "said",
    "scratch",
    "tap",
    "tapped",
    "told",
}


def read(path: Path) -> ast.Module:
    return ast.parse((SERVER / path).read_text(encoding="utf-8"))


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Those whose docstring says what is done: neither properties nor click's help texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = [ast.unparse(item) for item in node.decorator_list]
            if not any(re.search("property|main|click", item) for item in decorators):
                yield node


def names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.Name():
                yield node.id, node.lineno
            case ast.Attribute():
                yield node.attr, node.lineno
            case ast.arg():
                yield node.arg, node.lineno


def words_of(name: str) -> set[str]:
    return {word.lower() for word in re.findall("[A-Z]?[a-z0-9]+|[A-Z0-9]+", name)}


def test_docstrings_of_functions_begin_with_an_imperative() -> None:
    wrong = [
        f"{path}:{node.lineno} {node.name}: {text.splitlines()[0]}"
        for path in FILES
        for node in functions(read(path))
        if (text := ast.get_docstring(node)) and text.split()[0].rstrip(".,:;") not in VERBS.split()
    ]

    assert not wrong, "\n".join(wrong)


def test_names_have_no_private_words() -> None:
    wrong = [
        f"{path}:{line} {name}"
        for path in FILES
        for name, line in names(read(path))
        if words_of(name) & PRIVATE_WORDS
    ]

    assert not wrong, "\n".join(wrong)


def test_files_are_small() -> None:
    lines = {path: (SERVER / path).read_text(encoding="utf-8").count("\n") for path in FILES}

    assert {path: count for path, count in lines.items() if count > MAX_LINES} == {}
