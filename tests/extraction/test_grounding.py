import pytest

from qgrag.extraction.grounding import share_found, supporting_sentence

TEXT = "Mira Tolland lives in Port Esk. She sells maps. The town lies by the sea."


@pytest.mark.parametrize(
    ("names", "claim", "sentence"),
    [
        (("Mira Tolland", "Port Esk"), "", "Mira Tolland lives in Port Esk."),
        (("maps",), "", "She sells maps."),
        ((), "by which sea does the town lie", "The town lies by the sea."),
        (("Nobody",), "", ""),
        ((), "", ""),
    ],
)
def test_the_sentence_behind_a_claim(names: tuple[str, ...], claim: str, sentence: str) -> None:
    assert supporting_sentence(TEXT, names, claim) == sentence


def test_the_sentence_behind_a_claim_in_chinese() -> None:
    assert supporting_sentence("李华去了北京。王伟留在上海。", ("王伟",), "留在") == "王伟留在上海。"
    assert supporting_sentence("李华去了北京。王伟留在上海。", (), "谁去了北京") == "李华去了北京。"


@pytest.mark.parametrize(
    ("claim", "share"),
    [
        ("by the sea", 1.0),
        ("Port Esk", 1.0),
        ("Mira Tolland of Rome", 11 / 17),
        ("a person", 1 / 7),
        ("北京", 1.0),
        ("在上海", 1 / 3),
        ("", 1.0),
    ],
)
def test_how_much_of_a_claim_a_source_has(claim: str, share: float) -> None:
    assert share_found(claim, "MiraTolland met Mira and Tolland. A town, PortEsk, by the sea. 李华在北京。") == share


def test_how_a_claim_is_stored_makes_no_difference() -> None:
    assert share_found("caf\u00e9 \ufb01lm", "A Cafe\u0301, a fi\u00adlm, a bar.") == 1.0
    assert share_found("हिन्दी", "भाषा हिन्दी है") == 1.0
