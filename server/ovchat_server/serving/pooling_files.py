"""What the folder of a model that makes vectors of texts says about the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from ovchat_server.engine.contract.pooling_messages import Pooling
from ovchat_server.serving.model_folder import ModelFilesError, ModelFolder, integer
from ovchat_server.serving.model_path import MODEL, pooling_graph
from ovchat_server.serving.model_task import architecture_of, graph_names
from ovchat_server.serving.tokenizer_description import describe_tokenizer
from ovchat_server.tokenizer.huggingface import Tokenizer, TokenizerError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ovchat_server.domain.json_value import JsonObject

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
# Newer files have the names of modes, older ones those of flags.
_POOLING_NAMES: Mapping[str, Pooling] = {
    **{name: name for name in POOLINGS},
    **{f"{name}_token{end}": name for name in POOLINGS for end in ("", "s")},
}
# Their positions are counted from behind the number of the padding token.
_PADDED_POSITIONS = ("Roberta", "XLMRoberta", "Camembert", "MPNet")
NO_LENGTH = 1 << 31
# Modules of sentence-transformers that are done here, by the end of their type; or do nothing.
_DONE = ("Transformer", "Pooling", "Normalize", "Dropout")


@dataclass(frozen=True, slots=True)
class PoolingFiles:
    """A model's folder, read.

    Attributes:
        created: When the weights were written, in seconds since 1970 (UTC).
        architecture: The name of the model's class in transformers; "" if unknown.
        config: What `config.json` holds.
        graph: Where the graph is.
        names: The names of the graph's tensors.
        context_length: Most tokens of a text, as the model was made or trained for.
        tokenizer_info: What the tokenizer is configured with.
    """

    created: int
    architecture: str
    config: Mapping[str, Any]
    graph: Path
    names: frozenset[str]
    context_length: int
    tokenizer: Tokenizer
    tokenizer_info: JsonObject

    @property
    def pad_token(self) -> int:
        """The token that fills up the texts of a batch."""
        token = self.tokenizer.pad_token
        return (integer(self.config, "pad_token_id") or 0) if token is None else token

    @property
    def causal(self) -> bool:
        """Whether tokens see those before them only, so that the last one has seen the text."""
        return self.architecture.endswith("ForCausalLM")


@dataclass(frozen=True, slots=True)
class SentenceTransformersFiles:
    """What sentence-transformers' files say of a model.

    Attributes:
        pooling: How vectors of tokens become one; None: they do not say.
        normalize: Whether vectors have length 1; None: they do not say.
        prompts: Texts to put before others, by name.
        default_prompt: The name of the one that is put before texts of requests that name none.
        activation: The name of what makes scores of numbers; "": they do not say.
        unsupported: Steps that only the model's graph can have done.
    """

    pooling: Pooling | None = None
    normalize: bool | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    activation: str = ""
    unsupported: tuple[str, ...] = ()


def read_pooling_files(path: Path) -> PoolingFiles:
    """Read a model's folder.

    Raises:
        ModelFilesError: It is missing, or lacks something.
    """
    folder = ModelFolder(path)
    graph = pooling_graph(path) or folder.file(MODEL)
    try:
        tokenizer = Tokenizer.load(path)
    except TokenizerError as error:
        raise ModelFilesError(f"{error}, in {path}") from error
    return PoolingFiles(
        created=int(graph.stat().st_mtime),
        architecture=architecture_of(folder),
        config=folder.read_json("config.json"),
        graph=graph,
        names=graph_names(graph),
        context_length=_context_length(folder),
        tokenizer=tokenizer,
        tokenizer_info=describe_tokenizer(folder.read_json("tokenizer_config.json"), {}, ""),
    )


def read_sentence_transformers(path: Path) -> SentenceTransformersFiles:
    """Read the files that sentence-transformers keeps beside a model.

    Raises:
        ModelFilesError: One is no JSON, or says something that is not supported.
    """
    folder = ModelFolder(path)
    modules = _modules(folder)
    said = folder.read_json("config_sentence_transformers.json")
    prompts, default = said.get("prompts"), said.get("default_prompt_name")
    texts = prompts.items() if isinstance(prompts, dict) else ()
    named = {name: text for name, text in texts if isinstance(text, str)}
    if default is not None and default not in named:
        raise ModelFilesError(
            f"config_sentence_transformers.json names the prompt {default!r}, and has none of that "
            f"name, in {path}"
        )
    module = modules.get("Pooling", "1_Pooling")
    pooling = folder.read_json(f"{module}/config.json")
    if any(named.values()) and pooling.get("include_prompt") is False:
        raise ModelFilesError(
            f"{module}/config.json leaves prompts out of the pooling (include_prompt), which is "
            f"not supported, in {path}"
        )
    return SentenceTransformersFiles(
        pooling=_pooling(pooling, module, path),
        normalize="Normalize" in modules if modules else None,
        prompts=named,
        default_prompt=default,
        activation=_activation(folder.read_json("config.json"), said),
        unsupported=tuple(name for name in modules if name not in _DONE),
    )


def _activation(config: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """Return the name of a cross-encoder's activation, the last part of a path in torch."""
    own = config.get("sentence_transformers")
    places = (
        said.get("activation_fn"),
        own.get("activation_fn") if isinstance(own, dict) else None,
        config.get("sbert_ce_default_activation_function"),
    )
    return next((path.rpartition(".")[2] for path in places if isinstance(path, str)), "")


def _context_length(folder: ModelFolder) -> int:
    config = folder.read_json("config.json")
    positions = integer(config, "max_position_embeddings")
    if positions and architecture_of(folder).startswith(_PADDED_POSITIONS):
        positions -= (integer(config, "pad_token_id") or 0) + 1
    lengths = (
        positions,
        # What sentence-transformers cuts texts to: longer ones were never seen in training.
        integer(folder.read_json("sentence_bert_config.json"), "max_seq_length"),
        integer(folder.read_json("tokenizer_config.json"), "model_max_length"),
    )
    # Some tokenizers have a number beyond all models for none.
    known = [length for length in lengths if length and length < NO_LENGTH]
    if not known:
        raise ModelFilesError(f"config.json does not say the context length, in {folder.path}")
    return min(known)


def _modules(folder: ModelFolder) -> Mapping[str, str]:
    """Return the folders of sentence-transformers' modules by the last part of their type."""
    listed = folder.read_json_array("modules.json")
    return {
        str(module.get("type", "")).rpartition(".")[2]: str(module.get("path", ""))
        for module in listed
        if isinstance(module, dict)
    }


def _pooling(config: Mapping[str, Any], module: str, path: Path) -> Pooling | None:
    """Return the pooling that the configuration of a module of a model's folder names."""
    modes = config.get("pooling_mode")
    names = [modes] if isinstance(modes, str) else modes
    if not isinstance(names, list):
        flags = (key for key, value in config.items() if value is True)
        names = [key.removeprefix("pooling_mode_") for key in flags if key.startswith("pooling_")]
    found = [_POOLING_NAMES.get(str(name)) for name in names]
    match found:
        case []:
            return None
        case [str(one)]:
            return one
    said = " and ".join(map(str, names))
    raise ModelFilesError(
        f"{module}/config.json asks for the pooling {said}, which is not supported, in {path}"
    )
