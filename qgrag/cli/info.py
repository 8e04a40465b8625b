"""`qgrag info`: what an index holds, or how far a run of `qgrag eval` got."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qgrag.cli.parsing import command_parser
from qgrag.cli.show import show_extraction, show_usage
from qgrag.cli.unfinished import show_unfinished
from qgrag.evaluation.runs.run_folder import ANSWERS_PATTERN, SETTINGS_FILE, RunFolder
from qgrag.index.manifest import read_manifest
from qgrag.index.storage import verify_files


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("info", "Show what an index, or a run of qgrag eval, holds and what failed.")
    parser.add_argument("index", type=str, help="folder of an index, or of a run of qgrag eval")
    parser.add_argument("--config", action="store_true", help="print the whole configuration as YAML")
    args = parser.parse_args(arguments)
    console = Console()
    folder = Path(args.index)
    if (folder / SETTINGS_FILE).is_file():
        show_run(console, folder)
        return 0
    manifest = read_manifest(folder)
    verify_files(folder / manifest.generation, manifest.files, digests=False)
    if args.config:
        import yaml

        console.print(yaml.safe_dump(manifest.config, sort_keys=False, allow_unicode=True), end="")
        return 0
    table = Table(title=escape(args.index), title_justify="left", show_header=False)
    table.add_row("format", f"{manifest.format} {manifest.version}, written by qgrag {manifest.qgrag}")
    model = manifest.embedder
    table.add_row("embedder", escape(f"{model['name']}, {model['dimension']} dimensions, {model['fingerprint']}"))
    for name, count in manifest.counts.items():
        table.add_row(name.replace("_", " "), f"{count:,}")
    size = sum(entry["bytes"] for entry in manifest.files.values())
    table.add_row("size on disk", f"{size / 2**20:,.1f} MiB in {len(manifest.files)} files")
    table.add_row("last build", ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in manifest.seconds.items()))
    console.print(table)
    show_usage(console, manifest.usage, "asked of the language model, in all builds")
    show_extraction(console, manifest.extraction)
    show_unfinished(console, folder)
    return 0


def show_run(console: Console, folder: Path) -> None:
    """The retrievers of a run of `qgrag eval`, and what failed in it."""
    run = RunFolder(folder)
    settings = run.recorded()
    table = Table(title=escape(str(folder)), title_justify="left", show_header=False)
    table.add_row("data set", f"{settings['dataset']['name']}, {settings['dataset']['questions']} questions")
    for name in settings["retrievers"]:
        answers = len(run.all_results(name, ANSWERS_PATTERN))
        table.add_row(name, f"{len(run.all_results(name))} questions retrieved, {answers} answered")
    console.print(table)
    show_unfinished(console, folder)
