"""How Sphinx makes the site: `make docs`, which fails on any broken link or reference."""

import qgrag

project = "qgrag"
author = "The qgrag authors"
copyright = author
release = qgrag.__version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"qgrag {release}"
myst_heading_anchors = 3
