/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/api/answers.h"

#include "base/json.h"
#include "base/process/memory_budget.h"
#include "base/util.h"
#include "kube/api/answers_priv.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

static _Thread_local struct {
    bool open;
    size_t kept, reserved; /* bytes */
} answers_of_run;
static atomic_size_t answers_kept; /* by the runs of all threads */

void stw_answers_begin(void)
{
    assert(!answers_of_run.open);
    answers_of_run.open = true;
}

void stw_answers_reserve(size_t bytes)
{
    answers_of_run.reserved = STW_MAX(answers_of_run.reserved, bytes);
}

size_t stw_answers_reserved(void)
{
    return answers_of_run.reserved;
}

void stw_answers_end(void)
{
    stw_share_give_back(STW_SHARE_ANSWERS, answers_of_run.kept);
    atomic_fetch_sub(&answers_kept, answers_of_run.kept);
    stw_kept_forget(answers_of_run.kept);
    answers_of_run.open = false;
    answers_of_run.kept = answers_of_run.reserved = 0;
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

bool stw_answers_are_kept(void)
{
    return answers_of_run.open;
}

size_t stw_answer_most(void)
{
    size_t all = stw_share_limit(STW_SHARE_ANSWERS);
    return answers_of_run.open ? all / 2 : all;
}

/* The length of the whole answer is not known: the run asks for the most that one may take. */
static bool refuse(size_t bytes)
{
    if (answers_of_run.open && bytes <= stw_answer_most())
        stw_spare_want(stw_answer_most());
    return false;
}

bool stw_answer_hold(size_t *held, size_t bytes)
{
    if (bytes <= STW_ANSWER_FREE_BYTES || bytes <= answers_of_run.reserved || bytes <= *held ||
        (answers_of_run.open && stw_spare_has(bytes)))
        return true;
    if (answers_of_run.open &&
        (atomic_load(&answers_kept) + bytes > stw_answer_most() || !stw_kept_has_room(bytes))) {
        stw_share_note_refusal(STW_SHARE_ANSWERS);
        return refuse(bytes);
    }
    if (!stw_share_take(STW_SHARE_ANSWERS, bytes - *held))
        return refuse(bytes);
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
    if (!answers_of_run.open)
        return;
    answers_of_run.kept += *held;
    atomic_fetch_add(&answers_kept, *held);
    stw_kept_note(*held);
    *held = 0;
}
