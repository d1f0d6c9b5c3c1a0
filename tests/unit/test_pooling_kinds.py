"""Which kind a model's folder is of, and what its files and options make of it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import tokenizers

from ovchat_server.app import Server
from ovchat_server.domain.generation import Truncation, TruncationSide
from ovchat_server.kinds.base import EngineHost, ModelSettingsError
from ovchat_server.kinds.rerank import Rerank
from ovchat_server.kinds.text_embedding import TextEmbedding
from ovchat_server.metrics.server_metrics import ServerMetrics
from ovchat_server.serving.model_folder import ModelFilesError
from ovchat_server.serving.model_path import folder_fault
from ovchat_server.serving.model_task import model_task
from ovchat_server.serving.pair_scorers import CrossEncoder
from ovchat_server.serving.pairs import CrossEncoderPairs
from ovchat_server.serving.pooling import kept_tokens
from ovchat_server.serving.pooling_files import read_pooling_files, read_sentence_transformers
from ovchat_server.serving.pooling_models import EmbeddingModel, RerankModel
from ovchat_server.serving.scores import identity, probability_of_yes, sigmoid
from ovchat_server.settings import ModelSettings
from ovchat_server.start_error import StartError
from tests.conftest import ROOT, settings_of
from tests.pooling_folders import EMBEDDING, FOLDER, RERANK, folder_settings

if TYPE_CHECKING:
    from pathlib import Path

HOST = EngineHost((), lambda: None, ServerMetrics(1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the tiny BERT, to be changed."""
    return shutil.copytree(FOLDER / "bert", tmp_path / "bert")


def change(folder: Path, name: str, **fields: Any) -> None:
    file = folder / name
    old = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps(old | fields))


def embedding(folder: Path, **options: Any) -> EmbeddingModel:
    model = TextEmbedding().build(folder_settings("bert", path=folder, **options), HOST).model
    assert isinstance(model, EmbeddingModel)
    return model


def pooling(folder: Path, **options: Any) -> Any:
    return embedding(folder, **options).engine.supervisor._spec.pooling  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("path", "task"),
    [
        *((FOLDER / name, "text-embedding") for name in EMBEDDING),
        (FOLDER / "bert-rerank", "rerank"),
        (FOLDER / "xlm-r-rerank", "rerank"),
        (FOLDER / "qwen3-seq-cls", "rerank"),
        # As any language model, until its settings say otherwise.
        (FOLDER / "qwen3-rerank", "text-generation"),
        (ROOT / "models/demo", "text-generation"),
        (ROOT / "models/demo-vision", "text-generation"),
        (ROOT / "nothing", "text-generation"),
    ],
)
def test_a_folders_architecture_and_graph_tell_what_it_is_for(path: Path, task: str) -> None:
    assert model_task(path) == task


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("bert", {"kv_blocks": 8}, "kv_blocks is an option of models for text-generation"),
        ("bert", {"tool_parser": "hermes"}, "tool_parser is an option of models for text-gen"),
        ("bert-rerank", {"pooling": "cls"}, "pooling is an option of models for text-embedding"),
        ("demo", {"normalize": False}, "and this one is for text-generation: leave it out"),
        ("demo", {"max_batch_tokens": 9}, "of models for text-embedding or rerank, and this"),
        ("demo", {"task": "rerank"}, "has no token 'yes'|is no reranker's"),
        ("bert", {"task": "rerank"}, "BertModel is no reranker's: leave task"),
        ("bert-rerank", {"task": "text-embedding"}, "its graph returns no vectors of texts"),
    ],
)
def test_options_of_other_tasks_are_refused_by_name(
    name: str, options: dict[str, Any], complaint: str
) -> None:
    path = ROOT / "models/demo" if name == "demo" else FOLDER / name
    settings = ModelSettings(name=name, path=path, **options)
    with pytest.raises((StartError, ModelFilesError), match=complaint):
        Server(settings_of(settings))


def test_an_option_may_say_what_a_model_is_for() -> None:
    server = Server(settings_of(folder_settings("qwen3-rerank")))
    model = server._models.get("qwen3-rerank")
    assert isinstance(model, RerankModel)
    assert isinstance(model.pair_scorer, CrossEncoder)
    assert model.pair_scorer.activation is probability_of_yes


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode": ["weightedmean"]}, "weightedmean"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "cls"),
        (
            {"pooling_mode_mean_tokens": False, "pooling_mode_mean_sqrt_len_tokens": True},
            "mean_sqrt_len_tokens",
        ),
    ],
)
def test_pooling_is_read_as_sentence_transformers_writes_it(
    folder: Path, files: dict[str, Any], found: str
) -> None:
    change(folder, "1_Pooling/config.json", **files)
    assert pooling(folder) == found
    assert pooling(folder, pooling="lasttoken") == "lasttoken"


@pytest.mark.parametrize("files", [{"pooling_mode": ["cls", "max"]}, {"pooling_mode": "attention"}])
def test_pooling_that_is_not_supported_is_refused(folder: Path, files: dict[str, Any]) -> None:
    change(folder, "1_Pooling/config.json", **files)
    with pytest.raises(ModelFilesError, match=r"1_Pooling/config.json asks for the pooling"):
        pooling(folder)


def test_pooling_that_nothing_tells_is_not_guessed(folder: Path) -> None:
    (folder / "modules.json").unlink()
    shutil.rmtree(folder / "1_Pooling")
    with pytest.raises(ModelSettingsError, match=r"set pooling in its .* one of cls, lasttoken, "):
        pooling(folder)
    assert pooling(folder, pooling="cls") == "cls"
    # Without those files vectors have length 1, as with other servers.
    assert embedding(folder, pooling="cls").normalize
    # Of a language model only the last token has seen all of the text.
    change(folder, "config.json", architectures=["Qwen3ForCausalLM"])
    assert pooling(folder) == "lasttoken"


def test_steps_behind_the_pooling_are_not_left_out_in_silence(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    dense = {"idx": 3, "name": "3", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
    (folder / "modules.json").write_text(json.dumps([*modules, dense]))
    with pytest.raises(
        ModelSettingsError, match=r"modules.json has Dense, which this export lacks"
    ):
        pooling(folder)


def test_vectors_have_length_1_if_the_files_or_the_options_say(folder: Path) -> None:
    assert embedding(folder).normalize
    assert not embedding(folder, normalize=False).normalize
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:2]))
    assert not embedding(folder).normalize
    assert embedding(folder, normalize=True).normalize


@pytest.mark.parametrize(
    ("files", "sizes"),
    [
        ({}, ()),
        ({"is_matryoshka": True}, None),
        ({"matryoshka_dimensions": [8, 16]}, (8, 16)),
    ],
)
def test_the_config_says_which_dimensions_may_be_asked_for(
    folder: Path, files: dict[str, Any], sizes: Any
) -> None:
    change(folder, "config.json", **files)
    assert embedding(folder).matryoshka == sizes
    assert embedding(folder, matryoshka=True).matryoshka is None
    assert embedding(folder, matryoshka=False).matryoshka == ()


def test_a_text_may_have_as_many_tokens_as_the_model_was_trained_with(folder: Path) -> None:
    assert read_pooling_files(folder).context_length == 48
    (folder / "sentence_bert_config.json").unlink()
    change(folder, "tokenizer_config.json", model_max_length=10**30)
    assert read_pooling_files(folder).context_length == 64
    # The first positions are those of padding.
    assert read_pooling_files(FOLDER / "xlm-r").context_length == 64


def test_a_folder_may_be_as_sentence_transformers_saves_it(folder: Path) -> None:
    (folder / "openvino").mkdir()
    for name in ("openvino_model.xml", "openvino_model.bin"):
        (folder / name).rename(folder / "openvino" / name)
    assert model_task(folder) == "text-embedding"
    engine: Any = embedding(folder).engine
    assert engine.supervisor._spec.path == str(folder / "openvino")
    assert "give the folder above" in (folder_fault(folder / "openvino") or "")
    (folder / "openvino/openvino_model.bin").unlink()
    with pytest.raises(ModelFilesError, match=r"there is no openvino_model.bin in .*/openvino"):
        embedding(folder)


@pytest.mark.parametrize(
    ("file", "fields", "activation"),
    [
        ("config.json", {}, identity),
        ("config.json", {"sentence_transformers": {}}, sigmoid),
        (
            "config.json",
            {
                "sentence_transformers": {},
                "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity",
            },
            identity,
        ),
        (
            "config_sentence_transformers.json",
            {"activation_fn": "torch.nn.modules.activation.Sigmoid"},
            sigmoid,
        ),
    ],
)
def test_scores_are_made_as_the_files_say(
    tmp_path: Path, file: str, fields: dict[str, Any], activation: Any
) -> None:
    folder = shutil.copytree(FOLDER / "bert-rerank", tmp_path / "ranks")
    change(folder, file, **fields)
    model = Rerank().build(folder_settings("bert-rerank", path=folder), HOST).model
    assert isinstance(model, RerankModel)
    assert isinstance(model.pair_scorer, CrossEncoder)
    assert model.pair_scorer.activation is activation


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"id2label": {"0": "no", "1": "yes", "2": "perhaps"}}, "sorts texts into 3 classes"),
        ({"sentence_transformers": {"activation_fn": "torch.nn.Softmax"}}, "activation Softmax"),
    ],
)
def test_classifiers_that_give_no_score_are_refused(
    tmp_path: Path, fields: dict[str, Any], complaint: str
) -> None:
    folder = shutil.copytree(FOLDER / "bert-rerank", tmp_path / "ranks")
    change(folder, "config.json", **fields)
    with pytest.raises(ModelFilesError, match=complaint):
        Rerank().build(folder_settings("bert-rerank", path=folder), HOST)


def test_scores_are_numbers_whatever_the_logits_are() -> None:
    assert sigmoid([0.0]) == 0.5
    assert (sigmoid([-1e6]), sigmoid([1e6])) == (0.0, 1.0)
    assert probability_of_yes([2.0, 2.0]) == 0.5
    assert probability_of_yes([0.0, 1e6]) == 1.0


def test_tokens_are_kept_up_to_the_models_length() -> None:
    assert kept_tokens(None, 48) is None
    assert kept_tokens(Truncation(None, TruncationSide.RIGHT), 48) == 48
    assert kept_tokens(Truncation(99), 48) == 48
    assert kept_tokens(Truncation(9), 48) == 9


def test_a_limit_that_stands_for_none_is_none(folder: Path) -> None:
    (folder / "sentence_bert_config.json").unlink()
    change(folder, "config.json", max_position_embeddings=None)
    change(folder, "tokenizer_config.json", model_max_length=10**30)
    with pytest.raises(ModelFilesError, match=r"config.json does not say the context length"):
        read_pooling_files(folder)


def test_texts_may_be_as_long_as_the_options_say(folder: Path) -> None:
    assert embedding(folder, max_model_len=9).files.context_length == 9
    with pytest.raises(ModelSettingsError, match="max_model_len must be at most 48"):
        embedding(folder, max_model_len=49)


@pytest.mark.parametrize(
    ("file", "fields", "complaint"),
    [
        ("config_sentence_transformers.json", {"default_prompt_name": "no"}, "the prompt 'no'"),
        ("1_Pooling/config.json", {"include_prompt": False}, "leaves prompts out of the pooling"),
    ],
)
def test_prompts_that_cannot_be_put_as_the_files_say_are_refused(
    folder: Path, file: str, fields: dict[str, Any], complaint: str
) -> None:
    change(folder, "config_sentence_transformers.json", prompts={"query": "Query: "})
    assert embedding(folder).prompts == {"query": "Query: "}
    change(folder, file, **fields)
    with pytest.raises(ModelFilesError, match=complaint):
        embedding(folder)


@pytest.mark.parametrize("name", [*EMBEDDING, *RERANK])
def test_special_tokens_are_put_around_texts_as_the_tokenizer_puts_them(name: str) -> None:
    ours = read_pooling_files(FOLDER / name).tokenizer
    theirs = tokenizers.Tokenizer.from_file(str(FOLDER / name / "tokenizer.json"))
    theirs.no_truncation()
    theirs.no_padding()
    texts = ["The cat sits on the mat.", "cat", "", "7 * 6 = 42", "<s> [SEP] <|endoftext|>"]

    whole = ours.encode_batch(texts, special_tokens=True)
    assert whole == [theirs.encode(text).ids for text in texts]
    for first in texts:
        for second in texts:
            pair, frame = theirs.encode(first, second), CrossEncoderPairs().frame(ours, first)
            [tokens] = ours.encode_batch([second])
            assert [*frame.before, *tokens, *frame.behind] == pair.ids
            types = [0] * len(pair.ids)
            if frame.typed:
                types[len(frame.before) :] = [1] * (len(tokens) + len(frame.behind))
            assert types == pair.type_ids
    [left] = ours.encode_batch(texts[:1], special_tokens=True, most_tokens=6, cut_left=True)
    kept = 6 - ours.frame.count
    [all_of_it] = ours.encode_batch(texts[:1])
    assert left == [*ours.frame.before, *all_of_it[-kept:], *ours.frame.behind]


def test_prompts_are_those_of_the_file() -> None:
    said = read_sentence_transformers(FOLDER / "qwen3-embedding")
    assert {*said.prompts} == {"query", "document"}
    assert said.default_prompt is None
