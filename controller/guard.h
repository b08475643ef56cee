/* SPDX-License-Identifier: Apache-2.0
 *
 * Against writing in circles.  Two ways lead there: a server that answers an apply with other
 * values than were sent (so that the live object never has the digest that is wanted), and somebody
 * else who writes the same fields.  The first is remembered, the second is counted.  Any thread. */
#ifndef STW_CONTROLLER_GUARD_H
#define STW_CONTROLLER_GUARD_H

#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_guard;

#define STW_GUARD_WRITES 20              /* of one object, in ... */
#define STW_GUARD_WINDOW_MS 60000        /* ... this time; beyond it, no write for ... */
#define STW_GUARD_PAUSE_MS (10u * 60000) /* ... this time, or another one that is given */
#define STW_GUARD_STATUS_PAUSE_MS 60000  /* people wait for it */

struct stw_guard *stw_guard_create(void); /* NULL: no memory */
void stw_guard_destroy(struct stw_guard *g);

enum stw_guard_answer {
    STW_GUARD_GO,      /* counted; write */
    STW_GUARD_TRIPPED, /* this one is too many */
    STW_GUARD_CLOSED,  /* tripped before */
};
/* `what` names an object, such as "configmaps/ns/name".  Without memory the answer is GO. */
enum stw_guard_answer stw_guard_write(struct stw_guard *g, const char *what, uint64_t now_ms,
                                      uint64_t pause_ms);

/* The server turned what was wanted into something else, and that is how it will stay. */
void stw_guard_accept(struct stw_guard *g, const char *what, struct stw_hash wanted,
                      struct stw_hash live);
bool stw_guard_accepted(struct stw_guard *g, const char *what, struct stw_hash wanted,
                        struct stw_hash live);
void stw_guard_forget(struct stw_guard *g, const char *what); /* the object is gone */

#endif
