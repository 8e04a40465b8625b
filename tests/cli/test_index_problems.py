"""What `qgrag index` says of input that it cannot read."""

from pathlib import Path

from qgrag.cli.main import main


def test_every_broken_file_is_named_however_many_others_are_left_out(tmp_path: Path, capsys) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "good.txt").write_text("Euler was born in Basel.")
    for number in range(30):
        (notes / f"broken{number}.txt").write_bytes(b"caf\xe9")
        (notes / f"a{number}.jpg").write_bytes(b"\xff")
    config = tmp_path / "index.yaml"
    config.write_text("query_graph: null\nknowledge_graph: null\n")
    build = ["index", str(notes), "--out", str(tmp_path / "i"), "--config", str(config), "--dry-run"]
    main([*build, "--on-error", "skip"])
    printed = capsys.readouterr().out
    assert all(f"broken{number}.txt" in printed for number in range(30))
    assert "left out 10 more" in printed
    main(build)
    printed = capsys.readouterr().err
    assert all(f"broken{number}.txt" in printed for number in range(30))
