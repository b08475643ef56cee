/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/condition.h"

#include "base/util.h"
#include "base/visible.h"
#include "kube/tree.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const truth_names[] = {
    [STW_TRUE] = "True", [STW_FALSE] = "False", [STW_UNKNOWN] = "Unknown"};
static_assert(STW_COUNT(truth_names) == STW_UNKNOWN + 1, "one name for each truth");

const char *stw_truth_name(enum stw_truth truth)
{
    return truth_names[truth];
}

const json_t *stw_condition_find(const json_t *list, const char *type)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *c = json_array_get(list, i);
        if (stw_streq(stw_tree_text(c, "type"), type))
            return c;
    }
    return NULL;
}

bool stw_condition_is(const json_t *condition, enum stw_truth truth)
{
    return condition && stw_streq(stw_tree_text(condition, "status"), truth_names[truth]);
}

const char *stw_condition_reason(const json_t *condition)
{
    return stw_tree_text(condition, "reason");
}

static void append_condition(struct stw_conditions *c, json_t *condition)
{
    if (!c->list)
        c->list = json_array();
    if (!c->list || json_array_append_new(c->list, condition) != 0)
        c->failed = true;
}

/* Bytes of the well-formed character at `s` (RFC 3629, table of section 4), or 0. */
static size_t utf8_length(const unsigned char *s)
{
    static const struct {
        unsigned char first, last, second_min, second_max;
        size_t len;
    } forms[] = {
        {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < STW_COUNT(forms); i++) {
        size_t n = 1;
        if (*s < forms[i].first || *s > forms[i].last)
            continue;
        if (forms[i].len > 1 && (s[1] < forms[i].second_min || s[1] > forms[i].second_max))
            return 0;
        for (n = 2; n < forms[i].len; n++)
            if ((s[n] & 0xc0) != 0x80)
                return 0;
        return forms[i].len;
    }
    return 0;
}

void stw_message_clean(char *text, size_t max)
{
    size_t at = 0;
    while (text[at]) {
        size_t n = utf8_length((const unsigned char *)text + at);
        if (n == 0) {
            text[at] = '?';
            n = 1;
        }
        if (at + n > max) {
            text[at] = '\0';
            return;
        }
        at += n;
    }
}

void stw_condition_set(struct stw_conditions *c, const char *type, enum stw_truth truth,
                       const char *reason, const char *fmt, ...)
{
    char message[STW_CONDITION_MESSAGE_MAX + 8];
    const json_t *old = stw_condition_find(c->old, type);
    const char *since = stw_tree_text(old, "lastTransitionTime");
    va_list ap;

    va_start(ap, fmt);
    stw_vformat(message, sizeof(message), fmt, ap);
    va_end(ap);
    stw_message_clean(message, STW_CONDITION_MESSAGE_MAX);
    stw_visible_replace(message, STW_CONDITION_MESSAGE_MAX);
    if (!stw_condition_is(old, truth) || *since == '\0')
        since = c->now;
    append_condition(c,
                     json_pack("{s:s,s:s,s:I,s:s,s:s,s:s}", "type", type, "status",
                               truth_names[truth], "observedGeneration", (json_int_t)c->generation,
                               "lastTransitionTime", since, "reason", reason, "message", message));
}

void stw_condition_keep(struct stw_conditions *c, const char *type)
{
    const json_t *old = stw_condition_find(c->old, type);
    if (old)
        append_condition(c, json_deep_copy(old));
}
