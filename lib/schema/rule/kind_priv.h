/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this module: the walkers over field tables. */
#ifndef STW_SCHEMA_KIND_PRIV_H
#define STW_SCHEMA_KIND_PRIV_H

#include "base/arena.h"
#include "schema/field/path.h"
#include "schema/rule/check.h"

/* Whether a present value has the type of its row. */
/* A string with a NUL character fits nowhere: it becomes no C string. */
bool stw_field_fits(const struct stw_field *row, struct stw_json value);
/* What a value that does not fit must be. */
void stw_field_misfit(const struct stw_field *row, struct stw_json value, char *out, size_t size);
/* The value, as a message shows it: not one that may be a secret; null is none. */
struct stw_json stw_field_shown(const struct stw_field *row, struct stw_json value);
const char *stw_field_type_text(enum stw_field_type type); /* "an integer" */

/* Whether a table has a row of this name. */
bool stw_fields_have(const struct stw_field *rows, struct stw_json key);

/* Maximums: entries of a list or map whose row states none, members of an object that has a table,
 * values in an object that has none, and values in a spec. */
#define STW_ENTRIES_MAX 1000
#define STW_MEMBERS_MAX 1000
#define STW_RAW_VALUES_MAX 4096
#define STW_SPEC_VALUES_MAX 32768
#define STW_QUANTITY_MAX 63 /* bytes of a quantity that is a string */

/* The most entries that a LIST or MAP may have. */
static inline int64_t stw_field_entries_max(const struct stw_field *row)
{
    return row->has_range ? row->max : STW_ENTRIES_MAX;
}

/* Reports a member that is not in `rows`, with the row that it is like.  `raw`: it is passed on,
 * so it is not an error in strict checks either. */
void stw_check_unknown(const struct stw_path *at, const struct stw_field *rows, struct stw_json key,
                       bool raw, struct stw_findings *f);
/* Checks metadata.name and steward's annotations. */
void stw_check_metadata(const struct stw_admission *a, struct stw_findings *f);
/* Strict checks only: what the API server itself refuses in metadata, and unknown members of
 * metadata and status.  At admission the API server has done this already. */
void stw_check_envelope(const struct stw_admission *a, struct stw_arena *arena,
                        struct stw_findings *f);

/* Converts the object to each other version of its kind, and reports why that is impossible. */
void stw_check_conversion(const struct stw_admission *a, struct stw_findings *f);

/* Converts a->object to this version.  -1: it is reported why that is impossible. */
int stw_convert_or_report(const struct stw_admission *a, const char *version, struct stw_buf *out,
                          struct stw_findings *f) STW_MUST_CHECK;
#define STW_CONVERTED_MAX_BYTES ((size_t)16 << 20) /* of `out`; as a response of the webhook */

/* Turns errors from `first` on that existed before this UPDATE into warnings. */
void stw_ratchet(const struct stw_admission *a, size_t first, struct stw_findings *f);
/* Whether the old object is being deleted.  The API server ignores what the new one has in
 * metadata.deletionTimestamp. */
bool stw_is_leaving(const struct stw_admission *a);
/* Adds a finding with the path of each value that the schema of the CRD refuses in this UPDATE, as
 * API servers since 1.30 apply it. */
void stw_ratchet_schema(const struct stw_admission *a, struct stw_findings *f);
/* Reports changes of metadata that the API server sets itself, and finalizers that come too late. */
void stw_check_server_fields(const struct stw_admission *a, struct stw_findings *f);
/* Reports everything that is wrong with a->object, regardless of the old object. */
void stw_kind_judge(const struct stw_admission *a, struct stw_findings *f);
/* What the schema of another version of the kind refuses. */
void stw_kind_judge_version(const struct stw_admission *a, const struct stw_kind_version *v,
                            struct stw_findings *f);

void stw_findings_drop(struct stw_findings *f, size_t index); /* removes one error */

/* Writes `key:`; a string with the quotes that YAML needs; both, and nothing when `value` is NULL. */
void stw_crd_key(struct stw_buf *out, int indent, const char *key);
void stw_crd_scalar(struct stw_buf *out, const char *text);
void stw_crd_string(struct stw_buf *out, int indent, const char *key, const char *value);
/* Writes x-kubernetes-validations: those of a value; those of a kind, at the root of its schema. */
void stw_cel_print_value(struct stw_buf *out, int indent, const struct stw_field *row);
void stw_cel_print_kind(struct stw_buf *out, int indent, const struct stw_kind *k);

/* The status fields that every kind has. */
extern const struct stw_field stw_status_common[];

#endif
