"""Indexes on disk: built, opened, searched."""

from typing import TYPE_CHECKING

from qgrag.lazy import lazy_names

if TYPE_CHECKING:
    from qgrag.index.builder import build_index, plan_index
    from qgrag.index.config import IndexConfig
    from qgrag.index.knowledge.build import KnowledgeGraphConfig
    from qgrag.index.knowledge.entity_merge import EntityMergeConfig
    from qgrag.index.knowledge.graph import KnowledgeGraph
    from qgrag.index.lexical import LexicalConfig, LexicalIndex
    from qgrag.index.query_graph import QueryGraph, QueryGraphConfig
    from qgrag.index.reader import Index
    from qgrag.index.reports import BuildPlan, BuildReport
    from qgrag.index.vectors import VectorConfig, VectorIndex

__all__ = [
    "BuildPlan",
    "BuildReport",
    "EntityMergeConfig",
    "Index",
    "IndexConfig",
    "KnowledgeGraph",
    "KnowledgeGraphConfig",
    "LexicalConfig",
    "LexicalIndex",
    "QueryGraph",
    "QueryGraphConfig",
    "VectorConfig",
    "VectorIndex",
    "build_index",
    "plan_index",
]

__getattr__ = lazy_names(
    __name__,
    {
        "builder": ["build_index", "plan_index"],
        "config": ["IndexConfig"],
        "knowledge.build": ["KnowledgeGraphConfig"],
        "knowledge.entity_merge": ["EntityMergeConfig"],
        "knowledge.graph": ["KnowledgeGraph"],
        "lexical": ["LexicalConfig", "LexicalIndex"],
        "query_graph": ["QueryGraph", "QueryGraphConfig"],
        "reader": ["Index"],
        "reports": ["BuildPlan", "BuildReport"],
        "vectors": ["VectorConfig", "VectorIndex"],
    },
)
