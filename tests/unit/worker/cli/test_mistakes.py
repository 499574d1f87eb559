"""The mistakes of a validation in words, each once, with what to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from worker.cli.mistakes import Mistake, mistakes_of, mistakes_text


def info(name: str, *errors: str, **definition: Any) -> dict[str, Any]:
    described = {"name": name, "type": "STRING", "default_value": None, "documentation": "Says a thing. Or two."}
    return {
        "definition": described | definition,
        "value": {"name": name, "errors": list(errors), "recommended_values": []},
    }


def of(*configs: dict[str, Any]) -> list[Mistake]:
    return mistakes_of({"configs": list(configs)})


def test_a_mistake_that_several_keys_have_is_told_once() -> None:
    text = "topics and topics.regex are mutually exclusive options, but both are set."
    (mistake,) = of(info("topics", text), info("other"), info("topics.regex", text))
    assert mistake == Mistake(("topics", "topics.regex"), text, "Remove one of them.")


def test_that_a_value_is_null_is_not_told_of_one_that_cannot_be_read() -> None:
    (mistake,) = of(
        info(
            "tasks.max",
            "Invalid value x for configuration tasks.max: Not a number of type INT",
            "Invalid value null for configuration tasks.max: Value must be non-null",
            type="INT",
            default_value="1",
            documentation="Most tasks to divide\n the work into; at least one.",
        )
    )
    assert mistake.error.endswith("Not a number of type INT")
    assert mistake.remedy == "tasks.max (int, by default 1): Most tasks to divide the work into."


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (
            "Config 'transforms.a.negate' was provided but there is no config 'transforms.a.predicate' defining a "
            "predicate to be negated.",
            "Set transforms.a.predicate to the alias of a predicate, or remove transforms.a.negate.",
        ),
        (
            "Invalid value p for configuration transforms.a.predicate: Predicate must be one of the predicates listed",
            "Add p to predicates, and set predicates.p.type.",
        ),
        ("Invalid value [a, a] for configuration transforms: Duplicate alias provided.", "Name each alias once."),
    ],
)
def test_the_rules_of_the_framework_have_remedies_of_their_own(error: str, remedy: str) -> None:
    (mistake,) = of(info("key", error))
    assert mistake.remedy == remedy


def test_a_class_that_is_not_found_brings_the_command_that_lists_them() -> None:
    error = "Invalid value X for configuration transforms.a.type: Class X could not be found. Did you mean XY?"
    (mistake,) = of(info("transforms.a.type", error))
    assert mistake.remedy == "`sluice plugins list` lists the plugins there are."


def test_the_text_has_the_keys_the_error_and_the_remedy() -> None:
    text = mistakes_text([Mistake(("a", "b"), "is wrong", "mend it"), Mistake((), "all is wrong")])
    assert text == "  a, b\n    is wrong\n    -> mend it\n  the configuration\n    all is wrong"
