/* SPDX-License-Identifier: Apache-2.0
 *
 * The client library of an engine, loaded when the first target of that engine appears:
 * installations without one do not pay for it.  Its functions are called through a table whose
 * types are those of the library's own header, so that the compiler checks calls as if it were
 * linked. */
#ifndef STW_SQL_LIBRARY_H
#define STW_SQL_LIBRARY_H

#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>

struct stw_client_library {
    const char *file;    /* "libpq.so.5" */
    const char *package; /* Debian's name for it, for the error */
    const char *const *names;
    void *functions; /* `count` pointers, filled in the order of `names` */
    size_t count;
    bool loaded;
};

/* Each function of LIST(F) is a row F(name); `table` becomes a struct with a member for each.
 * NOLINTBEGIN(bugprone-macro-parentheses): name and table are names, which are declared here */
#define STW_LIBRARY_MEMBER(name) __typeof__(name) *name;
#define STW_LIBRARY_NAME(name) #name,
#define STW_LIBRARY(library, table, file_, package_, LIST)                                         \
    static struct {                                                                                \
        LIST(STW_LIBRARY_MEMBER)                                                                   \
    } table;                                                                                       \
    static struct stw_client_library library = {.file = (file_),                                   \
                                                .package = (package_),                             \
                                                .names =                                           \
                                                    (const char *const[]){LIST(STW_LIBRARY_NAME)}, \
                                                .functions = &(table),                             \
                                                .count = sizeof(table) / sizeof(void *)}
/* NOLINTEND(bugprone-macro-parentheses) */

/* Loads the library once and keeps it; thread-safe.  STW_ERR_INVALID reports what is missing and
 * what to install; the next call tries again. */
int stw_library_load(struct stw_client_library *l, struct stw_error *err) STW_MUST_CHECK;

#endif
