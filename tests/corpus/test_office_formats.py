"""PDF, DOCX and HTML, which are read through libraries of an extra."""

import io
import sys
from pathlib import Path

import pytest

from qgrag.corpus.readers import read_corpus
from qgrag.errors import InputError, MissingExtraError


def pdf_bytes(*lines: str) -> bytes:
    """A PDF of one page a line, written out by hand with a correct cross-reference table."""
    pages = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(lines)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{pages}] /Count {len(lines)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, line in enumerate(lines):
        content = f"BT /F1 12 Tf 72 720 Td ({line}) Tj ET" if line else ""
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Contents {5 + 2 * number} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    body, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return (body + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}").encode("latin-1")


def test_pdf_pages(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "a.pdf").write_bytes(pdf_bytes("Page one.", "Page two."))
    (tmp_path / "scan.pdf").write_bytes(pdf_bytes(""))
    report = read_corpus(tmp_path)
    assert [(document.id, document.text) for document in report.documents] == [("a.pdf", "Page one.\n\nPage two.")]
    assert report.documents[0].metadata["pages"] == "2"
    assert [(Path(problem.path).name, problem.kind) for problem in report.problems] == [("scan.pdf", "empty")]


def test_an_encrypted_pdf_is_named(tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    writer = pypdf.PdfWriter(io.BytesIO(pdf_bytes("Secret.")))
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(tmp_path / "a.pdf")
    with pytest.raises(InputError, match=r"a\.pdf: encrypted"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("name", ["a.pdf", "a.docx"])
@pytest.mark.parametrize("content", [b"%PDF-1.7\nnothing more", b"PK\x03\x04word/cut off", b"plain"])
def test_broken_files_are_named_and_the_others_read(tmp_path: Path, name: str, content: bytes) -> None:
    pytest.importorskip("pypdf")
    pytest.importorskip("docx")
    (tmp_path / name).write_bytes(content)
    (tmp_path / "b.txt").write_text("good")
    report = read_corpus(tmp_path, on_error="skip")
    assert [document.id for document in report.documents] == ["b.txt"]
    assert [(Path(problem.path).name, problem.kind) for problem in report.problems] == [(name, "error")]
    assert report.problems[0].reason


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9])
def test_a_truncated_pdf_is_read_or_named(tmp_path: Path, cut: float) -> None:
    pytest.importorskip("pypdf")
    whole = pdf_bytes("Page one.", "Page two.")
    (tmp_path / "a.pdf").write_bytes(whole[: int(len(whole) * cut)])
    report = read_corpus(tmp_path, on_error="skip")
    assert len(report.documents) + len(report.problems) == 1


def test_docx_keeps_paragraphs_and_tables_in_order(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Bridges", level=1)
    document.add_paragraph("Before the table.")
    table = document.add_table(rows=2, cols=2)
    for row, cells in enumerate([("name", "year"), ("Grunwald", "1910")]):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    document.add_paragraph("After the table.")
    document.save(tmp_path / "a.docx")
    (read,) = read_corpus(tmp_path).documents
    assert (read.id, read.title) == ("a.docx", "Bridges")
    assert read.text == "Bridges\nBefore the table.\nname | year\nGrunwald | 1910\nAfter the table."


HTML = """<!doctype html><html><head><meta charset="{charset}"><title>Caf\u00e9 &amp; bar</title>
<style>p {{ color: red }}</style><script>var x = "no";</script></head><body><!-- no -->
<h1>Heading</h1><p>One <b>bold</b>face
line.<br>Next.</p><ul><li>first<li>second</ul>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table><pre>x
y</pre></body></html>"""


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "utf-16"])
def test_html_shows_what_a_reader_sees(tmp_path: Path, charset: str) -> None:
    pytest.importorskip("bs4")
    (tmp_path / "a.html").write_bytes(HTML.format(charset=charset).encode(charset))
    (document,) = read_corpus(tmp_path).documents
    assert document.title == "Caf\u00e9 & bar"
    lines = ["Heading", "One boldface line.", "Next.", "first", "second", "a | b", "1 | 2", "x", "y"]
    assert document.text.split("\n") == lines


@pytest.mark.parametrize(
    ("declared", "written", "text"),
    [
        ("iso-8859-1", "cp1252", "it’s 5 €"),
        ("us-ascii", "cp1252", "“quoted”"),
        ("gb2312", "gb18030", "龘字"),
        ("shift_jis", "cp932", "①"),
        ("ks_c_5601-1987", "cp949", "똠"),
        ("utf-16", "utf-8", "ä"),
        ("hex", "utf-8", "ä"),
    ],
)
def test_html_is_decoded_as_browsers_do(tmp_path: Path, declared: str, written: str, text: str) -> None:
    pytest.importorskip("bs4")
    page = f'<html><head><meta charset="{declared}"></head><body>{text}</body></html>'
    (tmp_path / "a.html").write_bytes(page.encode(written))
    assert read_corpus(tmp_path).documents[0].text == text


def test_a_page_of_a_pdf_without_a_text_map_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "a.pdf").write_bytes(pdf_bytes("Page one.", "\\001\\002\\003\\004 \\005ab", "Page three\\001 is long."))
    report = read_corpus(tmp_path, on_error="skip")
    assert [document.text for document in report.documents] == ["Page one.\n\n\n\nPage three is long."]
    assert [(problem.location, problem.kind) for problem in report.problems] == [("page 2", "error")]
    assert "OCR" in report.problems[0].reason


def test_html_that_is_not_what_it_declares_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("bs4")
    (tmp_path / "a.html").write_bytes(HTML.format(charset="utf-8").encode("latin-1"))
    with pytest.raises(InputError, match=r"a\.html \(byte \d+\): not utf-8"):
        read_corpus(tmp_path)


@pytest.mark.parametrize(
    ("module", "package", "file"),
    [("pypdf", "pypdf", "a.pdf"), ("docx", "python-docx", "a.docx"), ("bs4", "beautifulsoup4", "a.html")],
)
def test_a_missing_library_names_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, package: str, file: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / file).write_text("<p>x</p>")
    with pytest.raises(MissingExtraError, match=rf"{package}.*qgrag\[documents\]"):
        read_corpus(tmp_path, on_error="skip")
