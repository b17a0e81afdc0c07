"""The canonical table of per-item results. Knows nothing of harnesses or models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.records.engine import connection, fresh_name, literal, quote, readable, scan
    from forgetmap.records.export.every_eval_ever import METADATA_KEYS, write_instances
    from forgetmap.records.folder import (
        MANIFEST,
        complete_folder,
        fill_scores,
        fill_texts,
        is_run_folder,
        parquet_columns,
        parquet_rows,
        read_run,
        refuse_to_replace,
        writable,
        write_parquet,
        write_run,
    )
    from forgetmap.records.frames import (
        ColumnMap,
        by_synonyms,
        canonical_run,
        listed,
        match_columns,
        needs_content,
        run_from_frame,
    )
    from forgetmap.records.identity import (
        normalise,
        option_text,
        options_hash,
        parse_options,
        text_hash,
    )
    from forgetmap.records.manifest import (
        HarnessInfo,
        MetricInfo,
        ModelInfo,
        Problem,
        RunInfo,
        ServiceInfo,
        TaskInfo,
        read_manifest,
    )
    from forgetmap.records.outcome import FAILED, MISSING, Outcome
    from forgetmap.records.repeats import as_repeats, count_repeats
    from forgetmap.records.run import Frame, Run
    from forgetmap.records.schema import (
        BY_NAME,
        CONTENT_HASHES,
        HASHES,
        KEY,
        MORE_TEXTS,
        SCORE_NAMES,
        SCORES,
        TEXT_NAMES,
        TEXTS,
        json_schema,
        scores_schema,
        texts_schema,
    )
    from forgetmap.records.tables import (
        Survey,
        TaskSurvey,
        build_run,
        quote_formulas,
        survey,
        unquote_formula,
        unquoted_sql,
        write_table,
    )
    from forgetmap.records.validate import (
        FileRow,
        check_run,
        file_of,
        locate_error,
        reading,
        refuse_duplicates,
    )

__all__ = [
    "BY_NAME",
    "CONTENT_HASHES",
    "FAILED",
    "HASHES",
    "KEY",
    "MANIFEST",
    "METADATA_KEYS",
    "MISSING",
    "MORE_TEXTS",
    "SCORES",
    "SCORE_NAMES",
    "TEXTS",
    "TEXT_NAMES",
    "ColumnMap",
    "FileRow",
    "Frame",
    "HarnessInfo",
    "MetricInfo",
    "ModelInfo",
    "Outcome",
    "Problem",
    "Run",
    "RunInfo",
    "ServiceInfo",
    "Survey",
    "TaskInfo",
    "TaskSurvey",
    "as_repeats",
    "build_run",
    "by_synonyms",
    "canonical_run",
    "check_run",
    "complete_folder",
    "connection",
    "count_repeats",
    "file_of",
    "fill_scores",
    "fill_texts",
    "fresh_name",
    "is_run_folder",
    "json_schema",
    "listed",
    "literal",
    "locate_error",
    "match_columns",
    "needs_content",
    "normalise",
    "option_text",
    "options_hash",
    "parquet_columns",
    "parquet_rows",
    "parse_options",
    "quote",
    "quote_formulas",
    "read_manifest",
    "read_run",
    "readable",
    "reading",
    "refuse_duplicates",
    "refuse_to_replace",
    "run_from_frame",
    "scan",
    "scores_schema",
    "survey",
    "text_hash",
    "texts_schema",
    "unquote_formula",
    "unquoted_sql",
    "writable",
    "write_instances",
    "write_parquet",
    "write_run",
    "write_table",
]

__getattr__ = load_on_use(__name__, __file__)
