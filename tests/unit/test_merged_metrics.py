"""The metrics of several servers, merged into one text."""

from __future__ import annotations

import re

from prometheus_client.parser import text_string_to_metric_families as parse

from ovchat_server.metrics.merged import answered, merged
from ovchat_server.metrics.server_metrics import ServerMetrics


def of_server(number: int, *models: str) -> bytes:
    metrics = ServerMetrics(number)
    for model in models:
        metrics.generation(model)
    return metrics.exposition()


def test_each_family_occurs_once_with_the_samples_of_all_servers() -> None:
    texts = [of_server(1, "a", "b"), of_server(2, "a", "b")]
    both = list(parse(merged(texts).decode()))
    names = [family.name for family in both]
    assert len(names) == len({*names})
    parts = [{family.name: family for family in parse(text.decode())} for text in texts]
    assert names == [*parts[0]]
    for family in both:
        one, two = (part[family.name] for part in parts)
        assert family.samples == one.samples + two.samples
        assert (family.type, family.documentation) == (one.type, one.documentation)


def test_one_text_stays_as_it_is() -> None:
    assert merged([of_server(1, "a")]) == of_server(1, "a")


def test_names_of_models_and_keys_are_kept_whatever_is_in_them() -> None:
    name = 'a"b\\c\nd # HELP e\r\u2028{}'
    text = merged([of_server(1, name), of_server(2, name)]).decode()
    found = {sample.labels.get("model_name") for family in parse(text) for sample in family.samples}
    assert found == {None, name}


def test_a_server_of_another_version_may_say_and_have_something_else() -> None:
    old = of_server(1, "a")
    new = of_server(2, "a").replace(b"Generated tokens.", b"All generated tokens.")
    new += b"# HELP new_total New.\n# TYPE new_total counter\nnew_total 1.0\n"
    text = merged([old, new]).decode()
    assert len(re.findall("# HELP vllm:generation_tokens_total", text)) == 1
    assert text.endswith("\nnew_total 1.0\n")


def test_no_server_is_no_text() -> None:
    assert merged([]) == b""


def test_who_answered_is_told_by_number() -> None:
    [family] = parse(answered([True, False, True]).decode())
    assert (family.name, family.type) == ("ovchat_up", "gauge")
    values = {sample.labels["server"]: sample.value for sample in family.samples}
    assert values == {"1": 1, "2": 0, "3": 1}
