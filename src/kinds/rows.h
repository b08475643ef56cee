/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that stand in the tables of several kinds. */
#ifndef STW_KINDS_ROWS_H
#define STW_KINDS_ROWS_H

#include "kinds/field.h"
#include "kinds/kind.h"

extern const struct stw_field stw_repair_fields[];

/* Rows of a status table: what stw_status_add_repairs writes. */
#define STW_ROW_REPAIRS                                                                            \
    {                                                                                              \
        .name = "repairs", .type = STW_T_INT, .format = "int64",                                   \
        .help = "How many times a child changed by somebody else was put right."                   \
    }
#define STW_ROW_LAST_REPAIR                                                                        \
    {                                                                                              \
        .name = "lastRepair", .type = STW_T_OBJECT, .help = "The latest of these repairs.",        \
        .fields = stw_repair_fields                                                                \
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
