/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/answers.h"

#include "base/json.h"
#include "base/memory_budget.h"
#include "base/util.h"
#include "kube/answers_priv.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

static _Thread_local struct {
    bool open;
    size_t kept, reserved; /* bytes */
} run;
static atomic_size_t kept; /* by the runs of all threads */

void stw_answers_begin(void)
{
    assert(!run.open);
    run.open = true;
}

void stw_answers_reserve(size_t bytes)
{
    run.reserved = STW_MAX(run.reserved, bytes);
}

void stw_answers_end(void)
{
    stw_share_give_back(STW_SHARE_ANSWERS, run.kept);
    atomic_fetch_sub(&kept, run.kept);
    stw_held_forget(run.kept);
    run.open = false;
    run.kept = run.reserved = 0;
}

/* Each value follows one of these. */
static size_t count_values(const char *text, size_t len)
{
    const char *end = text + len;
    bool in_string = false;
    size_t n = 0;
    for (; text < end; text++) {
        if (*text == '"')
            in_string = !in_string;
        else if (in_string)
            text += *text == '\\';
        else
            n += *text == ',' || *text == ':' || *text == '{' || *text == '[';
    }
    return n;
}

size_t stw_answer_memory(const struct stw_buf *body)
{
    size_t most = body->cap + body->len * sizeof(struct stw_json_token);
    if (most <= STW_ANSWER_FREE_BYTES)
        return most;
    return body->cap + count_values(stw_buf_str(body), body->len) * sizeof(struct stw_json_token);
}

size_t stw_answer_most(void)
{
    size_t all = stw_share_limit(STW_SHARE_ANSWERS);
    return run.open ? all / 2 : all;
}

bool stw_answer_hold(size_t *held, size_t bytes)
{
    if (bytes <= STW_ANSWER_FREE_BYTES || bytes <= run.reserved || bytes <= *held)
        return true;
    if (run.open && (atomic_load(&kept) + bytes > stw_answer_most() || !stw_held_has_room(bytes))) {
        stw_share_note_refusal(STW_SHARE_ANSWERS);
        return false;
    }
    if (!stw_share_take(STW_SHARE_ANSWERS, bytes - *held))
        return false;
    *held = bytes;
    return true;
}

void stw_answer_let_go(size_t *held)
{
    stw_share_give_back(STW_SHARE_ANSWERS, *held);
    *held = 0;
}

void stw_answer_keep(size_t *held)
{
    if (!run.open)
        return;
    run.kept += *held;
    atomic_fetch_add(&kept, *held);
    stw_held_note(*held);
    *held = 0;
}
