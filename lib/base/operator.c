/* SPDX-License-Identifier: Apache-2.0 */
#include "base/operator.h"

#include <assert.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* A DNS label: it begins names of objects and label values. */
static bool is_name(const char *s)
{
    size_t len = strlen(s);
    return len > 0 && len <= STW_OPERATOR_NAME_MAX && s[0] >= 'a' && s[0] <= 'z' &&
           s[len - 1] != '-' && strspn(s, LOWER DIGITS "-") == len;
}

/* A DNS subdomain. */
static bool is_domain(const char *s)
{
    size_t len = strlen(s);
    if (len == 0 || len > STW_OPERATOR_DOMAIN_MAX || strspn(s, LOWER DIGITS "-.") != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool first = i == 0 || s[i - 1] == '.', last = i + 1 == len || s[i + 1] == '.';
        if ((first || last) && (s[i] == '-' || s[i] == '.'))
            return false;
    }
    return true;
}

static bool is_metric_prefix(const char *s)
{
    size_t len = strlen(s);
    return len > 0 && len <= STW_OPERATOR_NAME_MAX && s[0] >= 'a' && s[0] <= 'z' &&
           strspn(s, LOWER DIGITS "_") == len;
}

void stw_operator_agent(const struct stw_operator *op, char out[STW_USER_AGENT_LEN])
{
    stw_format(out, STW_USER_AGENT_LEN, "%s/%s", op->name, op->version ? op->version : "0");
}

int stw_operator_check(const struct stw_operator *op, struct stw_error *err)
{
    if (!op->name || !is_name(op->name))
        return stw_fail(err, STW_ERR_INVALID,
                        "the name of an operator must be a DNS label of at most %d characters",
                        STW_OPERATOR_NAME_MAX);
    if (!op->domain || !is_domain(op->domain))
        return stw_fail(err, STW_ERR_INVALID,
                        "the domain of operator \"%s\" must be a DNS name of at most %d characters",
                        op->name, STW_OPERATOR_DOMAIN_MAX);
    if (!op->metric_prefix || !is_metric_prefix(op->metric_prefix))
        return stw_fail(
            err, STW_ERR_INVALID,
            "the metric prefix of operator \"%s\" must be at most %d of a-z, 0-9 and _, "
            "and start with a letter",
            op->name, STW_OPERATOR_NAME_MAX);
    return 0;
}

/* The next part of what `*text` stands for, and moves `*text` behind it.  NULL at the end. */
static const char *next_part(const struct stw_operator *op, const char **text, size_t *ret_len)
{
    const struct {
        const char *mark, *value;
    } all[] = {{"{operator}", op->name}, {"{domain}", op->domain}};
    const char *part = *text;
    for (size_t i = 0; i < STW_COUNT(all); i++) {
        size_t len = strlen(all[i].mark);
        if (strncmp(part, all[i].mark, len) != 0)
            continue;
        *text += len;
        *ret_len = strlen(all[i].value);
        return all[i].value;
    }
    *ret_len = *part == '{' ? 1 : strcspn(part, "{");
    *text += *ret_len;
    return *ret_len > 0 ? part : NULL;
}

void stw_operator_expand(const struct stw_operator *op, const char *text, struct stw_buf *out)
{
    size_t len;
    for (const char *part; (part = next_part(op, &text, &len));)
        stw_buf_add(out, part, len);
}

void stw_operator_text(const struct stw_operator *op, const char *text, char out[STW_OWN_NAME_LEN])
{
    size_t len, at = 0;
    for (const char *part; (part = next_part(op, &text, &len)); at += len) {
        assert(at + len < STW_OWN_NAME_LEN); /* the texts are our own */
        memcpy(out + at, part, len);
    }
    out[at] = '\0';
}
