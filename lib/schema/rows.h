/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that the tables of several kinds share. */
#ifndef STW_SCHEMA_ROWS_H
#define STW_SCHEMA_ROWS_H

#include "schema/core.h"
#include "schema/field.h"
#include "schema/kind.h"
#include "schema/names.h"

/* Used by the rows below. */
extern const struct stw_field stw_repair_fields[];
extern const struct stw_field stw_template_item;
extern const char *const stw_template_keys[];

/* Rows of a status table: what stw_status_add_repairs writes. */
#define STW_ROW_REPAIRS                                                                            \
    {                                                                                              \
        .name = "repairs", .type = STW_T_INT, .format = "int64",                                   \
        .help = "How many times {operator} repaired a child that another client had changed."      \
    }
#define STW_ROW_LAST_REPAIR                                                                        \
    {                                                                                              \
        .name = "lastRepair", .type = STW_T_OBJECT, .help = "The latest of these repairs.",        \
        .fields = stw_repair_fields                                                                \
    }

/* A row of a status table: what stw_status_add_templates writes.  With it, pod templates that differ
 * only because the program is another version wait for the next rollout. */
#define STW_ROW_TEMPLATES                                                                          \
    {                                                                                              \
        .name = "podTemplates", .type = STW_T_LIST,                                                \
        .help = "The pod templates that {operator} last applied.", STW_RANGE(0, 20),               \
        .item = &stw_template_item, .list_keys = stw_template_keys                                 \
    }

/* Rows of a spec table, for the member of a struct. */
#define STW_ROW_IMAGE(type_, member, text)                                                         \
    {                                                                                              \
        .name = "image", STW_FIELD(STW_T_STRING, type_, member), .help = (text), .required = true, \
        STW_RANGE(1, 1024), .range_text = STW_IMAGE_TEXT, STW_CHECK_IMAGE, .warn = stw_warn_image  \
    }
#define STW_ROW_PULL_SECRETS(type_, member)                                                        \
    {                                                                                              \
        .name = "imagePullSecrets", STW_FIELD(STW_T_LIST, type_, member),                          \
        .help = "Secrets with the credentials of the image's registry; at most 20.",               \
        STW_RANGE(0, 20), .item = &stw_core_pull_secret, .list_keys = stw_core_pull_secret_keys    \
    }

/* Rows of pods: affinity, tolerations. */
#define STW_ROW_AFFINITY(type_, member)                                                            \
    {                                                                                              \
        .name = "affinity", STW_FIELD(STW_T_RAW, type_, member),                                   \
        .help = "Scheduling constraints, as in a Pod.", .known = stw_core_affinity                 \
    }
#define STW_ROW_TOLERATIONS(type_, member)                                                         \
    {                                                                                              \
        .name = "tolerations", STW_FIELD(STW_T_LIST, type_, member),                               \
        .help = "Tolerations, as in a Pod; at most 100.", STW_RANGE(0, 100),                       \
        .item = &stw_core_toleration                                                               \
    }

/* Columns of `kubectl get`. */
#define STW_COLUMN_READY                                                                           \
    {                                                                                              \
        .name = "Ready", .type = "string",                                                         \
        .json_path = ".status.conditions[?(@.type==\"Ready\")].status"                             \
    }
#define STW_COLUMN_AGE                                                                             \
    {                                                                                              \
        .name = "Age", .type = "date", .json_path = ".metadata.creationTimestamp"                  \
    }

#endif
