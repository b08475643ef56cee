/* SPDX-License-Identifier: Apache-2.0
 *
 * Equality by value.  Recursion is bounded by STW_JSON_MAX_DEPTH: what is deeper is one value, which
 * is compared by its text. */
#include "base/json/json_priv.h"
#include "base/util.h"

#include <math.h>

#define MEMBERS_ON_STACK 32

static struct stw_json_decoder decoder_of(struct stw_json string)
{
    const struct stw_json_token *t = &string.doc->tokens[string.at];
    return (struct stw_json_decoder){.p = string.doc->text + t->start,
                                     .end = string.doc->text + t->end};
}

static int compare_strings(struct stw_json a, struct stw_json b)
{
    struct stw_json_decoder d = decoder_of(a), e = decoder_of(b);
    const char *p = NULL, *q = NULL;
    size_t n = 0, m = 0;

    if (stw_json_size(a) != stw_json_size(b))
        return stw_json_size(a) < stw_json_size(b) ? -1 : 1;
    for (;;) {
        n = n ? n : stw_json_decode(&d, &p);
        m = m ? m : stw_json_decode(&e, &q);
        size_t both = STW_MIN(n, m);
        int order = both ? memcmp(p, q, both) : 0;
        if (order != 0 || both == 0)
            return order;
        p += both;
        q += both;
        n -= both;
        m -= both;
    }
}

int stw_json_compare(struct stw_json a, struct stw_json b)
{
    bool is_string = stw_json_type(a) == STW_JSON_STRING;
    if (is_string != (stw_json_type(b) == STW_JSON_STRING))
        return is_string ? 1 : -1;
    return is_string ? compare_strings(a, b) : 0;
}

static bool equal_ints(struct stw_json a, struct stw_json b)
{
    int64_t x = 0, y = 0;
    return stw_json_int(a, &x) == 0 && stw_json_int(b, &y) == 0 && x == y;
}

/* The text of a number is not NUL-terminated, so strtod gets a copy.  NaN when out of memory. */
static double real_of(struct stw_json v)
{
    size_t len;
    const char *raw = stw_json_raw(v, &len);
    char *copy = strndup(raw, len);
    double value = copy ? strtod(copy, NULL) : NAN;
    free(copy);
    return value;
}

static bool equal_reals(struct stw_json a, struct stw_json b)
{
    double x = real_of(a), y = real_of(b);
    return isgreaterequal(x, y) && islessequal(x, y);
}

/* Most compared objects come from the same writer and have their members in the same order.
 * Compares keys only: each pair of values must be compared at most once, or every level would
 * double the work. */
static bool keys_in_order(struct stw_json a, struct stw_json b)
{
    struct stw_json key, other, v, w = stw_json_first(b, &other);
    stw_json_foreach (a, key, v) {
        if (stw_json_compare(key, other) != 0)
            return false;
        w = stw_json_after(b, w, &other);
    }
    return true;
}

/* Elements, or members in the same order. */
static bool equal_values(struct stw_json a, struct stw_json b)
{
    struct stw_json key, v, w = stw_json_first(b, &key);
    stw_json_foreach (a, key, v) {
        if (!stw_json_equal(v, w))
            return false;
        w = stw_json_after(b, w, &key);
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    struct stw_json x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return stw_json_compare(x, y);
}

static void sort_keys(struct stw_json object, struct stw_json *keys)
{
    struct stw_json key, value;
    size_t n = 0;
    stw_json_foreach (object, key, value)
        keys[n++] = key;
    qsort(keys, n, sizeof(*keys), by_name);
}

/* Compares both sorted by name, so that two large objects in different order do not take quadratic
 * time. */
static bool equal_sorted(struct stw_json a, struct stw_json b, struct stw_json *keys, uint32_t n)
{
    sort_keys(a, keys);
    sort_keys(b, keys + n);
    for (uint32_t i = 0; i < n; i++) {
        struct stw_json x = keys[i], y = keys[n + i];
        if (stw_json_compare(x, y) != 0)
            return false;
        x.at++;
        y.at++;
        if (!stw_json_equal(x, y))
            return false;
    }
    return true;
}

static bool equal_objects(struct stw_json a, struct stw_json b)
{
    struct stw_json few[2 * MEMBERS_ON_STACK];
    uint32_t n = stw_json_size(a);

    if (keys_in_order(a, b))
        return equal_values(a, b);
    if (n <= MEMBERS_ON_STACK)
        return equal_sorted(a, b, few, n);
    stw_autofree struct stw_json *keys = calloc(n, 2 * sizeof(*keys));
    return keys && equal_sorted(a, b, keys, n);
}

static bool equal_texts(struct stw_json a, struct stw_json b)
{
    size_t len, other;
    const char *text = stw_json_raw(a, &len), *with = stw_json_raw(b, &other);
    return len == other && memcmp(text, with, len) == 0;
}

bool stw_json_equal(struct stw_json a, struct stw_json b)
{
    enum stw_json_type type = stw_json_type(a);
    if (type != stw_json_type(b) || stw_json_size(a) != stw_json_size(b))
        return false;
    switch (type) {
    case STW_JSON_INT:
        return equal_ints(a, b);
    case STW_JSON_REAL:
        return equal_reals(a, b);
    case STW_JSON_STRING:
        return stw_json_compare(a, b) == 0;
    case STW_JSON_ARRAY:
        return equal_values(a, b);
    case STW_JSON_OBJECT:
        return equal_objects(a, b);
    case STW_JSON_DEEP:
        return equal_texts(a, b);
    default:
        return true;
    }
}
