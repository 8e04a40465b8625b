"""Retrievers: a list of queries in, a list of results out."""

from typing import TYPE_CHECKING

from qgrag.lazy import lazy_names

if TYPE_CHECKING:
    from qgrag.retrieval.base import Ranking, Retriever
    from qgrag.retrieval.evidence.explain import explain
    from qgrag.retrieval.linking.linker import EntityLinkerConfig
    from qgrag.retrieval.methods.auto.retriever import AutoConfig, AutoRetriever
    from qgrag.retrieval.methods.bm25 import BM25Retriever
    from qgrag.retrieval.methods.d2q import D2QConfig, D2QMinusRetriever, D2QRetriever
    from qgrag.retrieval.methods.dual.retriever import DualConfig, DualRetriever
    from qgrag.retrieval.methods.ensemble import EnsembleConfig, EnsembleRetriever
    from qgrag.retrieval.methods.fg.retriever import FGConfig, FGRetriever
    from qgrag.retrieval.methods.hybrid import HybridConfig, HybridRetriever
    from qgrag.retrieval.methods.kg import KGConfig, KGRetriever
    from qgrag.retrieval.methods.llm_only import LLMOnlyRetriever
    from qgrag.retrieval.methods.naive import NaiveRetriever
    from qgrag.retrieval.methods.ppr import PPRConfig, PPRRetriever
    from qgrag.retrieval.methods.qcg import QCGConfig, QCGRetriever
    from qgrag.retrieval.methods.qmkgf.retriever import QMKGFConfig, QMKGFRetriever
    from qgrag.retrieval.methods.rerank import RerankConfig, RerankRetriever
    from qgrag.retrieval.registry import load_retriever, retriever_settings
    from qgrag.retrieval.results import Hit, RetrievalResult

__all__ = [
    "AutoConfig",
    "AutoRetriever",
    "BM25Retriever",
    "D2QConfig",
    "D2QMinusRetriever",
    "D2QRetriever",
    "DualConfig",
    "DualRetriever",
    "EnsembleConfig",
    "EnsembleRetriever",
    "EntityLinkerConfig",
    "FGConfig",
    "FGRetriever",
    "Hit",
    "HybridConfig",
    "HybridRetriever",
    "KGConfig",
    "KGRetriever",
    "LLMOnlyRetriever",
    "NaiveRetriever",
    "PPRConfig",
    "PPRRetriever",
    "QCGConfig",
    "QCGRetriever",
    "QMKGFConfig",
    "QMKGFRetriever",
    "Ranking",
    "RerankConfig",
    "RerankRetriever",
    "RetrievalResult",
    "Retriever",
    "explain",
    "load_retriever",
    "retriever_settings",
]

__getattr__ = lazy_names(
    __name__,
    {
        "base": ["Ranking", "Retriever"],
        "evidence.explain": ["explain"],
        "linking.linker": ["EntityLinkerConfig"],
        "methods.auto.retriever": ["AutoConfig", "AutoRetriever"],
        "methods.bm25": ["BM25Retriever"],
        "methods.d2q": ["D2QConfig", "D2QMinusRetriever", "D2QRetriever"],
        "methods.dual.retriever": ["DualConfig", "DualRetriever"],
        "methods.ensemble": ["EnsembleConfig", "EnsembleRetriever"],
        "methods.fg.retriever": ["FGConfig", "FGRetriever"],
        "methods.hybrid": ["HybridConfig", "HybridRetriever"],
        "methods.kg": ["KGConfig", "KGRetriever"],
        "methods.llm_only": ["LLMOnlyRetriever"],
        "methods.naive": ["NaiveRetriever"],
        "methods.ppr": ["PPRConfig", "PPRRetriever"],
        "methods.qcg": ["QCGConfig", "QCGRetriever"],
        "methods.qmkgf.retriever": ["QMKGFConfig", "QMKGFRetriever"],
        "methods.rerank": ["RerankConfig", "RerankRetriever"],
        "registry": ["load_retriever", "retriever_settings"],
        "results": ["Hit", "RetrievalResult"],
    },
)
