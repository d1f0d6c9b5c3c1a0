from __future__ import annotations

from ovchat_server.serving.tokenizer_description import describe_tokenizer


def test_tokens_are_their_texts_and_files_are_left_out() -> None:
    eos = {"content": "</s>", "lstrip": False, "special": True}
    config = {
        "tokenizer_class": "LlamaTokenizerFast",
        "eos_token": eos,
        "bos_token": {"__type": "AddedToken", "content": "<s>"},
        "additional_special_tokens": [eos, "<x>"],
        "added_tokens_decoder": {"2": eos},
        "vocab_file": "/home/somebody/vocab.json",
        "model_max_length": 4096,
        "note": {"content": "no token"},
        "chat_template": [{"name": "default", "template": "old"}],
    }

    described = describe_tokenizer(config, {"pad_token": "<pad>"}, "{{ messages }}")

    assert described == {
        "tokenizer_class": "LlamaTokenizerFast",
        "eos_token": "</s>",
        "bos_token": "<s>",
        "pad_token": "<pad>",
        "additional_special_tokens": ["</s>", "<x>"],
        "added_tokens_decoder": {"2": "</s>"},
        "model_max_length": 4096,
        "note": {"content": "no token"},
        "chat_template": "{{ messages }}",
    }


def test_a_folder_without_configuration_has_transformers_class() -> None:
    assert describe_tokenizer({}, {}, "t") == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": "t",
    }
