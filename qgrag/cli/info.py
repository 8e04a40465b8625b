"""`qgrag info`: what an index holds."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qgrag.cli.parsing import command_parser
from qgrag.cli.show import show_extraction, show_usage
from qgrag.index.reader import Index


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("info", "Show what an index holds and how it was made.")
    parser.add_argument("index", type=str, help="folder of an index")
    parser.add_argument("--config", action="store_true", help="print the whole configuration as YAML")
    args = parser.parse_args(arguments)
    index = Index.open(args.index, verify=False)
    console = Console()
    if args.config:
        import yaml

        console.print(yaml.safe_dump(index.manifest.config, sort_keys=False, allow_unicode=True), end="")
        return 0
    manifest = index.manifest
    table = Table(title=escape(str(index.path)), title_justify="left", show_header=False)
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
    return 0
