/* SPDX-License-Identifier: Apache-2.0
 *
 * Prevents endless rewrites.  They have two causes: a server that stores other values than an apply
 * sent (the live digest then never equals the wanted one), and another client that writes the same
 * fields.  The digest of the former is remembered as accepted; writes against the latter are
 * counted, until a user asks for something else.  Any thread. */
#ifndef STW_CONTROLLER_GUARD_H
#define STW_CONTROLLER_GUARD_H

#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_guard;

#define STW_GUARD_WRITES 20              /* of one object, within ... */
#define STW_GUARD_WINDOW_MS 60000        /* ... this window; further writes are refused for ... */
#define STW_GUARD_PAUSE_MS (10u * 60000) /* ... this time, or for the pause_ms of the call */
#define STW_GUARD_STATUS_PAUSE_MS 60000  /* shorter, because users wait for the status */

struct stw_guard *stw_guard_create(void) STW_MUST_CHECK; /* NULL: no memory */
void stw_guard_destroy(struct stw_guard *g);

enum stw_guard_answer {
    STW_GUARD_GO,      /* counted; may be written */
    STW_GUARD_TRIPPED, /* this write exceeds the limit */
    STW_GUARD_CLOSED,  /* exceeded before */
};
/* `what` identifies an object, such as "configmaps/ns/name"; `asked`: changes with what a user asks
 * for, and then the count begins again.  Returns GO if out of memory. */
enum stw_guard_answer stw_guard_write(struct stw_guard *g, const char *what, uint64_t asked,
                                      uint64_t now_ms, uint64_t pause_ms);

/* Records that the server turns `wanted` into `live`, permanently. */
void stw_guard_accept(struct stw_guard *g, const char *what, struct stw_hash wanted,
                      struct stw_hash live);
bool stw_guard_accepted(struct stw_guard *g, const char *what, struct stw_hash wanted,
                        struct stw_hash live);
void stw_guard_forget(struct stw_guard *g, const char *what); /* the object is gone */

#endif
