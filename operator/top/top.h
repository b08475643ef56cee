/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward top`: what the replicas of a running program do now.  top.c has the command, read.c
 * asks the replicas, page.c writes a page, screen.c shows it in a terminal.
 *
 * Names and errors of objects come from tenants and reach a terminal: every text of a cluster goes
 * through base/visible.h. */
#ifndef STW_OPERATOR_TOP_H
#define STW_OPERATOR_TOP_H

#include "base/buf.h"
#include "base/error.h"
#include "base/operator.h"
#include "base/util.h"
#include "operator/installed/remote.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define STW_TOP_REPLICAS_MAX 16u
#define STW_TOP_OBJECTS_MAX 500u
#define STW_TOP_ROWS_MAX 64u /* of each other table of a replica */

/* --- asking (read.c) */

struct stw_top_options {
    void *extra; /* options of the extension */
    char *kubeconfig, *context, *ns, *account;
    char *url, *token_file, *ca_file, *server_name;
    int64_t interval_ms;
    bool once;
};

/* One look at one replica. */
struct stw_top_replica {
    char name[254];          /* of the pod, or the address */
    struct stw_answer state; /* /debug/state; root absent: err has the reason */
    struct stw_error err;
    bool counts_writes;
    double writes;  /* since its start, from /metrics */
    uint64_t at_ms; /* monotonic clock: when it answered */
};

struct stw_top_look {
    struct stw_top_replica replicas[STW_TOP_REPLICAS_MAX];
    uint32_t count;
    uint32_t more; /* replicas beyond the limit */
};
void stw_top_look_done(struct stw_top_look *look);

/* Access to the replicas. */
struct stw_top_source {
    const struct stw_operator *op; /* with limits of its own; set by open */
    struct stw_operator own;
    const struct stw_top_options *options;
    struct stw_remote remote;
    struct stw_buf token; /* "X-Proxied-Authorization: Bearer TOKEN"; empty: none yet */
    uint64_t token_until_ms;
};
/* `source` must be zeroed; call close() in any case. */
int stw_top_open(struct stw_top_source *source, const struct stw_operator *op,
                 const struct stw_top_options *options, struct stw_error *err) STW_MUST_CHECK;
void stw_top_close(struct stw_top_source *source);
/* Asks each replica; what one of them does not answer is in its `err`.  Frees the previous contents
 * of *ret.  -1: the replicas cannot be listed, or a right is missing that all of them need. */
int stw_top_look(struct stw_top_source *source, struct stw_top_look *ret,
                 struct stw_error *err) STW_MUST_CHECK;

/* The sum of rest_client_requests_total over the methods that write.  False: there is none. */
bool stw_top_count_writes(const char *metrics, double *ret);

/* --- a page (page.c) */

/* The bytes of the text that fit into `columns` of a terminal, and the columns that they take
 * (`ret_columns` may be NULL). */
size_t stw_top_cut(const char *text, size_t len, size_t columns, size_t *ret_columns);
/* "12s", "3m", "4h", "5d"; "0.4s" below ten seconds. */
void stw_top_duration(double seconds, char out[16]);

/* Writes the page as lines.  Rates are those between the two looks; a replica that was not read in
 * `before`, or has started again, shows the average since its start.  `before` may be NULL. */
void stw_top_page(const struct stw_top_look *before, const struct stw_top_look *now,
                  struct stw_buf *out);

/* --- the terminal (screen.c) */

/* Prepares the terminal, and restores it when a signal ends the program. */
void stw_top_screen_enter(void);
void stw_top_screen_leave(void);
/* Shows the lines of the page that fit, from line `*from` on, each cut to the width, below `head`.
 * Sets `*from` to the last line from which a whole window is filled if it is beyond that one.  -1:
 * the terminal is gone. */
int stw_top_screen_show(const char *head, const char *page, unsigned *from) STW_MUST_CHECK;
/* Waits for a key, at most `ms`.  STW_TOP_RESIZED: show the page again.  Keys that scroll change
 * `*from`. */
enum stw_top_event { STW_TOP_TIME, STW_TOP_QUIT, STW_TOP_RESIZED, STW_TOP_NOW };
enum stw_top_event stw_top_screen_wait(uint64_t ms, unsigned *from);
/* A page in a window of this size; for tests. */
void stw_top_screen_fit(const char *head, const char *page, unsigned width, unsigned height,
                        unsigned *from, struct stw_buf *out);
/* What a text that was typed means; for tests. */
enum stw_top_event stw_top_screen_keys(const char *bytes, unsigned page_lines, unsigned *from);

#endif
