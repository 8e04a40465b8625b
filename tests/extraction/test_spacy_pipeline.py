import pytest

from qgrag.errors import ModelNotFoundError
from qgrag.extraction.spacy_pipeline import is_cjk, load_pipeline, parse

ENGLISH = ["Ada Lovelace was born in London.", "She wrote notes. They were long.", "The Cam flows north."]
QUOTED = "他说：“走吧！”然后离开了。《家》是小说。真的吗？！好……"
CHINESE = ["居里夫人出生于华沙。她发现了镭！", "长城有多长？"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("123 ... !", False),
        ("plain English", False),
        ("Café Zürich", False),
        ("The word 鑽石 means diamond", False),
        ("物理学家", True),
        ("東京タワー", True),
        ("한국어 문장", True),
        ("Python 是一种编程语言", True),
    ],
)
def test_language_is_told_by_its_letters(text: str, expected: bool) -> None:
    assert is_cjk(text) is expected


def test_pipeline_is_loaded_once_for_each_choice_of_components() -> None:
    assert load_pipeline() is load_pipeline()
    assert "ner" in load_pipeline().pipe_names
    assert "ner" not in load_pipeline(disable=("ner",)).pipe_names


def test_missing_pipeline_says_what_to_install() -> None:
    with pytest.raises(ModelNotFoundError, match=r"xx_no_such_pipeline.*package"):
        load_pipeline("xx_no_such_pipeline")


def test_pipeline_is_read_from_a_folder(tmp_path) -> None:
    load_pipeline(disable=("ner",)).to_disk(tmp_path / "copy")
    document = load_pipeline(str(tmp_path / "copy"))("Grace Hopper wrote a compiler.")
    assert document.has_annotation("DEP")
    assert [token.text for token in document if token.dep_ == "nsubj"] == ["Hopper"]


def test_languages_mix_in_order_and_chinese_needs_no_english_model() -> None:
    texts = [ENGLISH[0], CHINESE[0], CHINESE[1], ENGLISH[1], "", ENGLISH[2]]
    documents = list(parse(texts))
    assert [document.text for document in documents] == texts
    assert [document.lang_ for document in documents] == ["en", "zh", "zh", "en", "en", "en"]
    assert "London" in [entity.text for entity in documents[0].ents]
    assert [sentence.text for sentence in documents[1].sents] == ["居里夫人出生于华沙。", "她发现了镭！"]
    assert len(list(parse(CHINESE, name="xx_no_such_pipeline"))) == 2


def test_chinese_sentences_keep_their_closing_quotes_and_no_opening_ones() -> None:
    sentences = [sentence.text for sentence in next(parse([QUOTED])).sents]
    assert sentences == ["他说：“走吧！”", "然后离开了。", "《家》是小说。", "真的吗？！", "好……"]


def test_batches_do_not_change_the_parse() -> None:
    def signature(batch_size: int) -> list[list[tuple[str, str, str]]]:
        documents = parse(ENGLISH * 5, batch_size=batch_size)
        return [[(token.text, token.dep_, token.ent_type_) for token in document] for document in documents]

    assert signature(1) == signature(4) == signature(100)


def test_batch_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"batch_size.*0"):
        list(parse(ENGLISH, batch_size=0))
