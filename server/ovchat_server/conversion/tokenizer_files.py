"""A model's tokenizer and chat template, from a GGUF file's metadata to a folder's files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import gguf
import openvino_genai as genai
from gguf import Keys, TokenType
from tokenizers import AddedToken, Tokenizer, decoders, models, processors

from ovchat_server.conversion.errors import ConversionError
from ovchat_server.conversion.pre_tokenizers import PRE_TOKENIZERS

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.conversion.gguf_file import GgufFile
    from ovchat_server.conversion.pre_tokenizers import PreTokenizer

BYTE_PAIRS = "gpt2"
# Control tokens that end an answer whatever the file calls its end token: chat models end turns and
# texts with different ones (llama.cpp, llama-vocab.cpp, special_eog_ids).
END_TEXTS = frozenset(
    {
        *("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>"),
        *("<end_of_turn>", "<｜end▁of▁sentence｜>", "</s>"),
    }
)
NAMED_TOKENS = {
    "bos_token": Keys.Tokenizer.BOS_ID,
    "eos_token": Keys.Tokenizer.EOS_ID,
    "unk_token": Keys.Tokenizer.UNK_ID,
    "pad_token": Keys.Tokenizer.PAD_ID,
}
SAMPLING = {
    "temperature": (Keys.General.SAMPLING_TEMP, float),
    "top_p": (Keys.General.SAMPLING_TOP_P, float),
    "min_p": (Keys.General.SAMPLING_MIN_P, float),
    "top_k": (Keys.General.SAMPLING_TOP_K, int),
}


class TokenizerFiles:
    """What a folder has of a file's tokenizer."""

    def __init__(self, file: GgufFile) -> None:
        """Read the tokenizer in a file.

        Raises:
            ConversionError: It is of a kind that cannot be read, or there is no chat template.
        """
        self._file = file
        model = file.required(Keys.Tokenizer.MODEL, str)
        if model != BYTE_PAIRS:
            raise ConversionError(
                f"{file.path}: its tokenizer {model!r} cannot be read, only {BYTE_PAIRS!r} "
                "(pairs of bytes)"
            )
        name = file.get(Keys.Tokenizer.PRE, str, "default")
        if name not in PRE_TOKENIZERS:
            raise ConversionError(
                f"{file.path}: how it cuts texts into words, {name!r}, is not known, only "
                f"{', '.join(sorted(PRE_TOKENIZERS))}"
            )
        self._rules: PreTokenizer = PRE_TOKENIZERS[name]
        self._tokens = file.values(Keys.Tokenizer.LIST, str)
        self._kinds = file.values(Keys.Tokenizer.TOKEN_TYPE, int)
        if not self._tokens or len(self._tokens) != len(self._kinds):
            raise ConversionError(
                f"{file.path}: {Keys.Tokenizer.LIST} and {Keys.Tokenizer.TOKEN_TYPE} do not match"
            )
        self._templates = self._chat_templates()

    def write(self, folder: Path) -> None:
        """Write them into a folder."""
        self._tokenizer().save(str(folder / "tokenizer.json"))
        names = self._named_tokens()
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "chat_template": self._templates,
            **{name: self._tokens[token] for name, token in names.items()},
        }
        write_json(folder / "tokenizer_config.json", config)
        write_json(folder / "generation_config.json", self._generation_config(names))
        self._write_for_engine(folder)

    def _chat_templates(self) -> str | list[dict[str, str]]:
        """Return the template, or all of them, as `tokenizer_config.json` has them."""
        default = self._file.get(Keys.Tokenizer.CHAT_TEMPLATE, str, "")
        if not default:
            raise ConversionError(
                f"{self._file.path} has no chat template, so it is not a model for chats"
            )
        named = self._file.values(Keys.Tokenizer.CHAT_TEMPLATES, str)
        if not named:
            return default
        keys = {name: Keys.Tokenizer.CHAT_TEMPLATE_N.format(name=name) for name in named}
        others = [
            {"name": name, "template": self._file.required(key, str)} for name, key in keys.items()
        ]
        return [{"name": "default", "template": default}, *others]

    def _tokenizer(self) -> Tokenizer:
        pairs = (pair.partition(" ") for pair in self._file.values(Keys.Tokenizer.MERGES, str))
        merges = [(first, second) for first, _, second in pairs]
        vocabulary = {token: number for number, token in enumerate(self._tokens)}
        tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=self._rules.whole_words))
        if normalizer := self._rules.normalizer():
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = self._rules.pre_tokenizer()
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens(self._added(TokenType.CONTROL))
        tokenizer.add_tokens(self._added(TokenType.USER_DEFINED))
        bos = self._named_tokens().get("bos_token")
        if bos is not None and self._file.get(Keys.Tokenizer.ADD_BOS, bool, self._rules.adds_bos):
            text = self._tokens[bos]
            tokenizer.post_processor = processors.TemplateProcessing(
                single=[text, "$A"], pair=[text, "$A", text, "$B"], special_tokens=[(text, bos)]
            )
        return tokenizer

    def _added(self, kind: TokenType) -> list[AddedToken]:
        special = kind is TokenType.CONTROL
        return [
            AddedToken(token, special=special, normalized=False)
            for token, its_kind in zip(self._tokens, self._kinds, strict=True)
            if its_kind == kind
        ]

    def _named_tokens(self) -> dict[str, int]:
        """Return the tokens that templates name, where they are tokens."""
        named = {name: self._file.get(key, int, -1) for name, key in NAMED_TOKENS.items()}
        return {name: token for name, token in named.items() if 0 <= token < len(self._tokens)}

    def _generation_config(self, names: dict[str, int]) -> dict[str, object]:
        keys = (Keys.Tokenizer.EOS_ID, Keys.Tokenizer.EOT_ID, Keys.Tokenizer.EOM_ID)
        ends = {self._file.get(key, int, -1) for key in keys} - {-1}
        ends |= {
            number
            for number, (token, kind) in enumerate(zip(self._tokens, self._kinds, strict=True))
            if kind == TokenType.CONTROL and token in END_TEXTS
        }
        sampling = {
            name: self._file.get(key, kind, kind())
            for name, (key, kind) in SAMPLING.items()
            if key in self._file.fields
        }
        pad = {"pad_token_id": names["pad_token"]} if "pad_token" in names else {}
        return {"eos_token_id": sorted(ends), **pad, **sampling}

    def _write_for_engine(self, folder: Path) -> None:
        """Write the tokenizer as genai has it, which it makes of a file without weights."""
        path = folder / "tokenizer.gguf"
        writer = gguf.GGUFWriter(path, self._file.architecture)
        for key, field in self._file.fields.items():
            if key.startswith("tokenizer."):
                writer.add_key_value(
                    key,
                    field.contents(),
                    field.types[0],
                    field.types[-1] if field.types[1:] else None,
                )
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        genai.Tokenizer(path, enable_save_ov_model=True)
        path.unlink()


def write_json(path: Path, value: object) -> None:
    """Write a file of a folder, for people to read as well."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
