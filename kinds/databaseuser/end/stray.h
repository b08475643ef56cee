/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether what a mark on a server stands for still belongs to the object that it names.  No I/O; shared by
 * the sweep of the controller and by `steward doctor`. */
#ifndef STW_KINDS_DATABASEUSER_STRAY_H
#define STW_KINDS_DATABASEUSER_STRAY_H

#include "base/json.h"
#include "sql/core/marks.h"
#include "sql/target/target.h"

enum dbu_stray {
    DBU_STRAY_NOT,
    DBU_STRAY_GONE,     /* there is no object with this UID */
    DBU_STRAY_MOVED,    /* the object is on another server */
    DBU_STRAY_UNWANTED, /* the object has another account, or not this database */
};

/* `object` has metadata, spec and status; absent: there is none of the mark's namespace and name.  Both
 * targets are of one configuration. */
enum dbu_stray dbu_stray_judge(const struct stw_found_mark *m, struct stw_json object,
                               const struct stw_targets *targets, const struct stw_target *swept);
/* "is left of this object, which no longer exists" */
const char *dbu_stray_text(enum dbu_stray s);
/* What removes it, for a database administrator; the text has names only. */
void dbu_stray_advise(const struct stw_found_mark *m, const struct stw_target *t,
                      struct stw_buf *out);

#endif
