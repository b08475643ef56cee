/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/skim_priv.h"

#include "base/json.h"
#include "base/util.h"

/* For each member of an object, the scanner has up to four slots of a table that finds equal keys.
 * Each member is two tokens. */
#define SLOT_BYTES ((size_t)8)
#define BYTES_OF_A_VALUE (sizeof(struct stw_json_token) + 2 * SLOT_BYTES)
/* Two keys are compared decoded if they have escapes, in buffers that grow by doubling. */
#define BYTES_OF_A_KEY ((size_t)4)

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* Behind the closing quote of the string that begins at p; NULL: it has no end. */
static const char *skip_string(const char *p, const char *end, bool *ret_escaped)
{
    *ret_escaped = false;
    for (p++; p < end && *p != '"'; p++) {
        if (*p != '\\')
            continue;
        *ret_escaped = true;
        if (++p == end)
            return NULL;
    }
    return p < end ? p + 1 : NULL;
}

/* Behind the value that begins at p; NULL: it has no end. */
static const char *skip_value(const char *p, const char *end)
{
    bool escaped;
    size_t depth = 0;
    if (p < end && *p == '"')
        return skip_string(p, end, &escaped);
    for (; p < end; p++) {
        if (*p == '"') {
            p = skip_string(p, end, &escaped);
            if (!p)
                return NULL;
            p--;
        } else if (*p == '{' || *p == '[') {
            depth++;
        } else if (*p == '}' || *p == ']') {
            if (depth <= 1)
                return depth == 1 ? p + 1 : p;
            depth--;
        } else if (depth == 0 && *p == ',') {
            return p;
        }
    }
    return NULL;
}

size_t stw_skim_memory(struct stw_piece text)
{
    const char *p = text.at, *end = text.at + text.len;
    size_t values = 1, longest = 0;
    for (; p < end; p++) {
        bool escaped;
        const char *from = p;
        values += *p == ',' || *p == ':' || *p == '{' || *p == '[';
        if (*p != '"')
            continue;
        p = skip_string(p, end, &escaped);
        if (!p)
            break;
        if (escaped && (size_t)(p - from) > longest) {
            const char *next = skip_space(p, end);
            if (next < end && *next == ':')
                longest = (size_t)(p - from);
        }
        p--;
    }
    return values * BYTES_OF_A_VALUE + longest * BYTES_OF_A_KEY;
}

struct stw_piece stw_skim_member(struct stw_piece object, const char *name)
{
    static const struct stw_piece none = {0};
    const char *p = object.at, *end = object.at + object.len;
    size_t name_len = strlen(name);
    bool escaped;
    p = skip_space(p, end);
    if (p == end || *p != '{')
        return none;
    for (p = skip_space(p + 1, end); p < end && *p == '"'; p = skip_space(p + 1, end)) {
        const char *key = p + 1;
        p = skip_string(p, end, &escaped);
        size_t len = p ? (size_t)(p - 1 - key) : 0;
        p = p ? skip_space(p, end) : end;
        if (p == end || *p != ':')
            return none;
        const char *value = skip_space(p + 1, end);
        p = skip_value(value, end);
        if (!p)
            return none;
        if (len == name_len && memcmp(key, name, len) == 0)
            return (struct stw_piece){value, (size_t)(p - value)};
        p = skip_space(p, end);
        if (p == end || *p != ',')
            return none;
    }
    return none;
}

int stw_skim_element(struct stw_piece *at, struct stw_piece *ret)
{
    const char *p = at->at, *end = at->at + at->len;
    bool first = p < end && *p == '[';
    if (p == end || (!first && *p != ',' && *p != ']'))
        return -1;
    if (*p == ']')
        return end - p == 1 ? 0 : -1;
    p = skip_space(p + 1, end);
    if (first && p < end && *p == ']')
        return end - p == 1 ? 0 : -1;
    const char *value = p, *behind = skip_value(p, end);
    if (!behind || behind == value)
        return -1;
    *ret = (struct stw_piece){value, (size_t)(behind - value)};
    p = skip_space(behind, end);
    *at = (struct stw_piece){p, (size_t)(end - p)};
    return 1;
}
