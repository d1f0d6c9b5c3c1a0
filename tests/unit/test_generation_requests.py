"""What the engine is asked: the request's wishes, the model's defaults, the context's room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.domain.errors import ContextLengthExceededError, InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import (
    BeamSearch,
    Ending,
    GenerationParams,
    SamplingParams,
    SpeculationParams,
    Truncation,
    TruncationSide,
)
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.generation import (
    BeamSearch as EngineBeamSearch,
)
from ovchat_server.engine.contract.generation import (
    GenerationRequest,
    GenerationStatus,
    Sampling,
)
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.contract.speculation import NO_SPECULATION, Speculation
from ovchat_server.serving.answer_format import NO_GRAMMAR
from ovchat_server.serving.context import ContextWindow
from ovchat_server.serving.generation import (
    DEFAULT_TOP_K,
    generation_requests,
    resolve_sampling,
    resolve_speculation,
)
from ovchat_server.serving.limits import check_limits
from ovchat_server.serving.model_files import GenerationDefaults
from ovchat_server.serving.render import RenderedPrompt
from tests.unit.serving_tools import CONTEXT, SEARCH_LENGTHS, VOCABULARY, ScriptedEngine, served

if TYPE_CHECKING:
    from ovchat_server.serving.models import TextModel

PROMPT = RenderedPrompt(FieldPath.of("messages"), Prompt((1, 2, 3)))


def requests(
    params: GenerationParams | None = None,
    *prompts: RenderedPrompt,
    model: TextModel | None = None,
    strict: bool = False,
) -> list[GenerationRequest]:
    model, params, prompts = model or served(), params or GenerationParams(), prompts or (PROMPT,)
    lengths = check_limits(model, params, prompts, strict=strict)
    sampling = resolve_sampling(params.sampling, model.files.defaults)
    return generation_requests(params, prompts, lengths, sampling, NO_GRAMMAR)


def prompt(tokens: int, field: str = "messages") -> RenderedPrompt:
    return RenderedPrompt(FieldPath.of(field), Prompt((1,) * tokens))


def ending(**fields: Any) -> GenerationParams:
    return GenerationParams(ending=Ending(**fields))


def seeds(seed: int | None, n: int = 1, *prompts: RenderedPrompt) -> list[int]:
    params = GenerationParams(SamplingParams(seed=seed), n=n)
    return [request.sampling.seed for request in requests(params, *prompts)]


@pytest.mark.parametrize(
    ("field", "last"),
    [
        ("temperature", 1.0),
        ("top_p", 1.0),
        ("top_k", DEFAULT_TOP_K),
        ("min_p", 0.0),
        ("repetition_penalty", 1.0),
    ],
)
def test_the_request_wins_over_the_model_over_openai_and_ovms(field: str, last: float) -> None:
    values: tuple[Any, Any] = (3, 7) if field == "top_k" else (0.25, 0.5)
    model, asked = GenerationDefaults(**{field: values[0]}), SamplingParams(**{field: values[1]})
    nothing = SamplingParams()
    assert getattr(resolve_sampling(nothing, GenerationDefaults()), field) == last
    assert getattr(resolve_sampling(nothing, model), field) == getattr(model, field)
    assert getattr(resolve_sampling(asked, model), field) == getattr(asked, field)


def test_a_zero_that_was_asked_for_is_no_default() -> None:
    model = GenerationDefaults(temperature=0.5, top_k=3, min_p=0.5)
    asked = SamplingParams(temperature=0, top_k=0, min_p=0, seed=0)
    assert resolve_sampling(asked, model) == Sampling()


@pytest.mark.parametrize(("value", "expected"), [(-1, 0), (0, 0), (1, 1)])
def test_top_k_is_turned_off_in_two_ways(value: int, expected: int) -> None:
    assert resolve_sampling(SamplingParams(top_k=value), GenerationDefaults()).top_k == expected


@pytest.mark.parametrize(("value", "expected"), [(0.9e-5, 0.0), (1e-5, 1e-5), (2, 2)])
def test_a_temperature_next_to_nothing_is_greedy(value: float, expected: float) -> None:
    sampling = resolve_sampling(SamplingParams(temperature=value), GenerationDefaults())
    assert sampling.temperature == expected


@pytest.mark.parametrize(
    ("asked", "folder", "expected"),
    [
        ((None, None), (None, None), (5, 3)),
        ((None, None), (7, 2), (7, 2)),
        ((9, 4), (7, 2), (9, 4)),
        ((9, None), (None, 2), (9, 2)),
        ((0, None), (7, None), (0, 3)),
        # What a folder says may be anything.
        ((None, None), (-1, -1), (0, 1)),
        ((None, None), (1000, 1000), (32, 32)),
    ],
)
def test_what_is_proposed_is_the_requests_then_the_folders_then_the_options(
    asked: tuple[Any, Any], folder: tuple[Any, Any], expected: tuple[int, int]
) -> None:
    request = SpeculationParams(*asked)
    defaults = GenerationDefaults(num_assistant_tokens=folder[0], max_ngram_size=folder[1])
    resolved = resolve_speculation(request, defaults, Speculation(5, 3))
    assert resolved == Speculation(*expected)
    assert resolve_speculation(request, defaults, NO_SPECULATION) == NO_SPECULATION


@pytest.mark.parametrize(
    ("asked", "folder", "expected"),
    [
        ((None, None), (None, None), (5, 0.3)),
        ((None, None), (7, 0.4), (7, 0.4)),
        # So many tokens, or as many as the draft model is sure of.
        ((9, None), (7, 0.4), (9, 0.0)),
        ((None, 0.6), (7, 0.4), (32, 0.6)),
        ((None, 0.0), (None, None), (32, 0.0)),
        ((0, None), (7, 0.4), (0, 0.0)),
        ((None, None), (-1, -1.0), (0, 0.0)),
        ((None, None), (1000, 2.0), (32, 1.0)),
    ],
)
def test_what_is_drafted_is_the_requests_then_the_folders_then_the_options(
    asked: tuple[Any, Any], folder: tuple[Any, Any], expected: tuple[int, float]
) -> None:
    request = SpeculationParams(asked[0], 9, asked[1])
    defaults = GenerationDefaults(
        num_assistant_tokens=folder[0], max_ngram_size=9, assistant_confidence_threshold=folder[1]
    )
    resolved = resolve_speculation(request, defaults, Speculation(5, 0, 0.3))
    assert resolved == Speculation(expected[0], 0, expected[1])


@given(st.integers(0, 2**32 - 1))
def test_a_seed_that_the_engine_takes_is_what_it_gets(seed: int) -> None:
    assert seeds(seed) == [seed]


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_seed_is_folded_into_what_the_engine_takes(seed: int) -> None:
    [folded] = seeds(seed)
    assert 0 <= folded < 2**32
    assert seeds(seed) == [folded]


def test_seeds_that_differ_in_their_upper_half_differ() -> None:
    assert len({*seeds(1), *seeds(1 + 2**32), *seeds(1 + 2**33)}) == 3


def test_without_a_seed_every_request_has_its_own() -> None:
    assert len({seeds(None)[0] for _ in range(20)}) == 20


def test_every_choice_has_the_next_seed() -> None:
    assert seeds(5, 3) == [5, 6, 7]
    assert seeds(5, 2, PROMPT, PROMPT) == [5, 6, 7, 8]
    assert seeds(2**32 - 1, 3) == [2**32 - 1, 0, 1]
    first, *others = seeds(None, 4)
    assert others == [(first + number) % 2**32 for number in (1, 2, 3)]


def test_choices_are_requests_of_their_own_in_the_order_of_the_prompts() -> None:
    first, second = (
        RenderedPrompt(FieldPath.of("prompt", 0), Prompt((1,))),
        RenderedPrompt(FieldPath.of("prompt", 1), Prompt((2,))),
    )
    asked = requests(GenerationParams(n=2), first, second)
    assert [request.prompt.tokens for request in asked] == [(1,), (1,), (2,), (2,)]
    assert [request.sequences for request in asked] == [1] * 4


def test_a_search_is_one_request_for_all_choices() -> None:
    params = GenerationParams(SamplingParams(temperature=1, seed=3), n=2, beams=BeamSearch(4, 0.5))
    [request] = requests(params)
    assert request.beam_search == EngineBeamSearch(width=4, returned=2, length_penalty=0.5)
    assert request.sequences == 2
    # It takes no samples.
    assert request.sampling == Sampling()


def test_all_that_ends_an_answer_reaches_the_engine() -> None:
    wishes = Ending(max_tokens=9, min_tokens=2, ignore_eos=True, stop_token_ids=(4, 5))
    [request] = requests(GenerationParams(ending=wishes, logprobs=True))
    assert request.max_tokens == 9
    assert request.min_tokens == 2
    assert request.ignore_eos
    assert request.stop_tokens == (4, 5)
    assert request.logprobs


@pytest.mark.parametrize(
    ("default", "params", "expected"),
    [
        (None, ending(), CONTEXT - 3),
        (10, ending(), 10),
        # A wish, not a limit.
        (1000, ending(), CONTEXT - 3),
        (10, ending(min_tokens=20), 20),
        (10, ending(max_tokens=30), 30),
        (10, ending(max_tokens=5), 5),
        (None, ending(max_tokens=CONTEXT - 3), CONTEXT - 3),
    ],
)
def test_the_length_is_the_requests_then_the_models_then_all_there_is(
    default: int | None, params: GenerationParams, expected: int
) -> None:
    model = served(defaults=GenerationDefaults(max_tokens=default))
    assert requests(params, model=model)[0].max_tokens == expected


@pytest.mark.parametrize(
    ("params", "tokens", "field"),
    [
        (ending(), CONTEXT, "messages"),
        (ending(max_tokens=1), CONTEXT, "messages"),
        (ending(max_tokens=2), CONTEXT - 1, "max_tokens"),
        (
            ending(max_tokens=2, max_tokens_field=FieldPath.of("max_completion_tokens")),
            CONTEXT - 1,
            "max_completion_tokens",
        ),
        (ending(min_tokens=2), CONTEXT - 1, "min_tokens"),
        (ending(max_tokens=3, min_tokens=3), CONTEXT - 1, "max_tokens"),
    ],
)
def test_what_does_not_fit_is_refused_by_the_name_the_caller_used(
    params: GenerationParams, tokens: int, field: str
) -> None:
    with pytest.raises(ContextLengthExceededError) as caught:
        requests(params, prompt(tokens), strict=True)
    assert caught.value.param == str(field)
    assert str(CONTEXT) in caught.value.message
    assert str(tokens) in caught.value.message


@pytest.mark.parametrize("asked", [2, CONTEXT, 32_000])
def test_more_than_there_is_room_for_is_up_to_the_end_of_the_context(asked: int) -> None:
    [request] = requests(ending(max_tokens=asked), prompt(CONTEXT - 1))
    # Who asks for all there is has said nothing of the answer's length: no room is kept for it.
    assert (request.max_tokens, request.reserve_max_tokens) == (1, False)


def test_room_is_kept_for_what_a_caller_asked_for_and_not_for_a_models_own_length() -> None:
    model = served(defaults=GenerationDefaults(max_tokens=5))

    assert [
        request.reserve_max_tokens for request in requests(ending(max_tokens=5), model=model)
    ] == [True]
    assert [request.reserve_max_tokens for request in requests(ending(), model=model)] == [False]


def test_prompt_and_answer_may_fill_the_context() -> None:
    [request] = requests(ending(max_tokens=1), prompt(CONTEXT - 1))
    assert request.max_tokens == 1
    [request] = requests(ending(), prompt(CONTEXT - 1))
    assert request.max_tokens == 1


def test_the_prompt_that_is_too_long_is_named() -> None:
    with pytest.raises(ContextLengthExceededError) as caught:
        requests(ending(), prompt(1, "prompt[0]"), prompt(CONTEXT, "prompt[1]"))
    assert caught.value.param == "prompt[1]"


@pytest.mark.parametrize("width", [2, 3, 4])
def test_a_search_has_the_room_that_its_beams_leave(width: int) -> None:
    room = SEARCH_LENGTHS[width - 1]
    params = GenerationParams(n=1, beams=BeamSearch(width))
    assert requests(params, prompt(10))[0].max_tokens == room - 10
    assert refused(params, prompt(room)) == "best_of"
    # By sampling it fits.
    assert requests(GenerationParams(n=width), prompt(room))[0].max_tokens == CONTEXT - room


def refused(params: GenerationParams, given: RenderedPrompt, words: str = "") -> str | None:
    """The field at fault of a request that does not fit, for which `words` are said."""
    with pytest.raises(ContextLengthExceededError) as caught:
        requests(params, given)
    assert words in caught.value.message
    return caught.value.param


@pytest.mark.parametrize(
    ("width", "tokens", "max_tokens", "fits"),
    [
        (4, 25, None, 3),
        (4, 25, 8, 3),
        (4, 25, 9, 2),
        (3, 33, None, 2),
        (4, 33, 0, 3),
        (4, 49, None, 2),
        (2, 50, None, 1),
        (4, 98, None, 1),
    ],
)
def test_a_search_too_wide_is_told_how_wide_it_may_be(
    width: int, tokens: int, max_tokens: int | None, fits: int
) -> None:
    searching = GenerationParams(ending=Ending(max_tokens), beams=BeamSearch(width))
    words = f"best_of must be at most {fits} for this request: of {width} beams each has room for "
    assert refused(searching, prompt(tokens), words) == "best_of"
    narrower = GenerationParams(ending=Ending(max_tokens), beams=BeamSearch(fits))
    assert requests(narrower, prompt(tokens))


def test_a_search_as_wide_as_its_choices_is_refused_by_theirs() -> None:
    searching = GenerationParams(n=4, beams=BeamSearch(4, field=FieldPath.of("n")))
    assert refused(searching, prompt(40), "n must be at most 2 for this request") == "n"


def test_what_no_search_has_room_for_is_not_its_widths_fault() -> None:
    searching = GenerationParams(beams=BeamSearch(4))
    assert refused(searching, prompt(CONTEXT), f"length is {CONTEXT} tokens") == "messages"
    long = GenerationParams(ending=Ending(max_tokens=CONTEXT), beams=BeamSearch(4))
    [request] = requests(long, prompt(3))
    assert request.max_tokens == SEARCH_LENGTHS[3] - 3
    with pytest.raises(ContextLengthExceededError, match="best_of must be at most 3"):
        requests(GenerationParams(ending=Ending(6), beams=BeamSearch(4)), prompt(20), strict=True)
    # Here the width is one fault of two.
    assert refused(long, prompt(40), "best_of must be at most 2") == "best_of"


def test_while_the_model_loads_its_own_context_counts() -> None:
    engine = ScriptedEngine(status=GenerationStatus(ModelState.LOADING, context_length=0))
    model = served(engine, context_length=50)
    assert requests(model=model)[0].max_tokens == 47
    params = GenerationParams(beams=BeamSearch(4))
    assert requests(params, model=model)[0].max_tokens == 47


def test_a_smaller_pool_than_the_models_context_counts() -> None:
    assert requests(model=served(context_length=4096))[0].max_tokens == CONTEXT - 3


@pytest.mark.parametrize(
    "field", [FieldPath.of("messages"), FieldPath.of("prompt"), FieldPath.of("prompt", 3)]
)
def test_an_empty_prompt_is_refused(field: FieldPath) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        requests(None, RenderedPrompt(field, Prompt(())))
    assert caught.value.param == str(field)
    assert caught.value.code == "invalid_value"


@pytest.mark.parametrize(
    ("params", "tokens", "path"),
    [
        (ending(stop_token_ids=(0, VOCABULARY)), (1,), "stop_token_ids[1]"),
        (ending(), (VOCABULARY - 1, 1, VOCABULARY), "prompt[7][2]"),
        (ending(), (2**32 - 1,), "prompt[7][0]"),
    ],
)
def test_a_token_that_the_model_does_not_have_is_refused_by_its_place(
    params: GenerationParams, tokens: tuple[int, ...], path: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        requests(params, RenderedPrompt(FieldPath.of("prompt", 7), Prompt(tokens)))
    assert caught.value.param == path
    assert str(VOCABULARY) in caught.value.message


def test_the_last_token_of_the_vocabulary_is_one() -> None:
    last = VOCABULARY - 1
    [request] = requests(
        ending(stop_token_ids=(last,)), RenderedPrompt(FieldPath.of("prompt"), Prompt((last,)))
    )
    assert (request.prompt.tokens, request.stop_tokens) == ((last,), (last,))


TOKENS = tuple(range(90))


@pytest.mark.parametrize(
    ("tokens", "side", "expected"),
    [
        (5, TruncationSide.LEFT, TOKENS[-5:]),
        (5, TruncationSide.RIGHT, TOKENS[:5]),
        (90, TruncationSide.LEFT, TOKENS),
        (91, TruncationSide.RIGHT, TOKENS),
        (89, TruncationSide.LEFT, TOKENS[1:]),
        (1, TruncationSide.LEFT, TOKENS[-1:]),
        # More than there is room for: refused later, as without.
        (2**32 - 1, TruncationSide.LEFT, TOKENS),
    ],
)
def test_a_prompt_is_cut_on_one_side(
    tokens: int, side: TruncationSide, expected: tuple[int, ...]
) -> None:
    params = GenerationParams(truncation=Truncation(tokens, side))
    assert ContextWindow(served(), params).truncate(TOKENS) == expected


@pytest.mark.parametrize(
    ("most", "beams", "kept"),
    [
        # One token of an answer at the least.
        (None, None, CONTEXT - 1),
        (30, None, CONTEXT - 30),
        (None, BeamSearch(2), 49),
        (30, BeamSearch(2), 20),
        # There must be a prompt, and then max_tokens is what does not fit.
        (CONTEXT + 5, None, 1),
    ],
)
def test_a_prompt_is_cut_to_the_room_that_the_answer_leaves(
    most: int | None, beams: BeamSearch | None, kept: int
) -> None:
    tokens = tuple(range(200))
    for side, expected in (
        (TruncationSide.LEFT, tokens[-kept:]),
        (TruncationSide.RIGHT, tokens[:kept]),
    ):
        params = GenerationParams(
            ending=Ending(max_tokens=most), beams=beams, truncation=Truncation(None, side)
        )
        assert ContextWindow(served(), params).truncate(tokens) == expected


def test_a_cut_prompt_leaves_room_for_the_fewest_tokens() -> None:
    params = GenerationParams(ending=Ending(min_tokens=20), truncation=Truncation(None))
    tokens = ContextWindow(served(), params).truncate((1,) * 200)
    assert len(tokens) == CONTEXT - 20
    assert (
        requests(params, RenderedPrompt(FieldPath.of("messages"), Prompt(tokens)))[0].max_tokens
        == 20
    )


@pytest.mark.parametrize(
    ("ending", "most"),
    [
        (Ending(), 75),
        (Ending(max_tokens=10), 90),
        (Ending(max_tokens=10 * CONTEXT), 75),
        (Ending(min_tokens=30), 70),
    ],
)
def test_a_prompt_leaves_the_answer_a_quarter_of_the_context(ending: Ending, most: int) -> None:
    window = ContextWindow(served(), GenerationParams(ending=ending))
    assert (window.longest_prompt, window.roomy_prompt) == (CONTEXT - 1, most)


def test_without_truncation_a_prompt_stays_whole() -> None:
    assert ContextWindow(served(), GenerationParams()).truncate(TOKENS) == TOKENS
