/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/tree.h"

#include "base/clock.h"

#include <stdio.h>

#define DEPTH_MAX 512

const char *stw_tree_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

void stw_tree_copy(const json_t *object, const char *key, char *out, size_t size)
{
    stw_format(out, size, "%s", stw_tree_text(object, key));
}

int64_t stw_tree_time(const json_t *object, const char *key, int64_t none)
{
    int64_t us;
    return stw_time_parse(stw_tree_text(object, key), &us) == 0 ? us / 1000000 : none;
}

void stw_tree_set_text(json_t *object, const char *key, const char *text)
{
    if (text && *text)
        (void)json_object_set_new(object, key, json_string(text));
}

void stw_tree_set_time(json_t *object, const char *key, int64_t at, int64_t none)
{
    char text[STW_TIME_LEN];
    if (at == none)
        return;
    stw_time_format(at * 1000000, text);
    (void)json_object_set_new(object, key, json_string(text));
}

static json_t *read_object(struct stw_json v)
{
    struct stw_json key, value;
    json_t *object = json_object();
    stw_json_foreach (v, key, value) {
        stw_autofree char *name = stw_json_strdup(key);
        if (!name || json_object_set_new_nocheck(object, name, stw_tree_read(value)) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *read_array(struct stw_json v)
{
    struct stw_json none, value;
    json_t *array = json_array();
    stw_json_foreach (v, none, value) {
        if (json_array_append_new(array, stw_tree_read(value)) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *read_string(struct stw_json v)
{
    size_t len;
    const char *raw = stw_json_raw(v, &len);
    if (stw_json_size(v) + 2 == len) /* without escapes */
        return json_stringn_nocheck(raw + 1, len - 2);
    stw_autobuf struct stw_buf text = STW_BUF_INIT(UINT32_MAX);
    stw_json_str(v, &text);
    return text.failed ? NULL : json_stringn_nocheck(stw_buf_str(&text), text.len);
}

static json_t *read_number(struct stw_json v)
{
    int64_t n;
    size_t len;
    if (stw_json_int(v, &n) == 0)
        return json_integer(n);
    const char *raw = stw_json_raw(v, &len);
    stw_autofree char *text = strndup(raw, len); /* strtod needs its end */
    return text ? json_real(strtod(text, NULL)) : NULL;
}

json_t *stw_tree_read(struct stw_json v)
{
    switch (stw_json_type(v)) {
    case STW_JSON_NULL:
        return json_null();
    case STW_JSON_FALSE:
    case STW_JSON_TRUE:
        return json_boolean(stw_json_bool(v, false));
    case STW_JSON_INT:
    case STW_JSON_REAL:
        return read_number(v);
    case STW_JSON_STRING:
        return read_string(v);
    case STW_JSON_ARRAY:
        return read_array(v);
    case STW_JSON_OBJECT:
        return read_object(v);
    case STW_JSON_ABSENT:
    case STW_JSON_DEEP:
        break;
    }
    return NULL;
}

static int write_value(const json_t *v, struct stw_buf *out, unsigned depth);

static int write_object(const json_t *object, struct stw_buf *out, unsigned depth)
{
    json_t *tree = (json_t *)(uintptr_t)object, *value; /* jansson's iterators lack const */
    const char *key;
    bool first = true;
    stw_buf_addc(out, '{');
    json_object_foreach (tree, key, value) {
        if (!first)
            stw_buf_addc(out, ',');
        first = false;
        stw_buf_json_strz(out, key);
        stw_buf_addc(out, ':');
        if (write_value(value, out, depth + 1) != 0)
            return -1;
    }
    stw_buf_addc(out, '}');
    return 0;
}

static int write_array(const json_t *array, struct stw_buf *out, unsigned depth)
{
    size_t n = json_array_size(array);
    stw_buf_addc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            stw_buf_addc(out, ',');
        if (write_value(json_array_get(array, i), out, depth + 1) != 0)
            return -1;
    }
    stw_buf_addc(out, ']');
    return 0;
}

/* As jansson writes it: the shortest text that is read back as the same number. */
static void write_real(const json_t *v, struct stw_buf *out)
{
    char text[64];
    size_t len = json_dumpb(v, text, sizeof(text), JSON_ENCODE_ANY | JSON_COMPACT);
    stw_buf_add(out, text, len < sizeof(text) ? len : 0);
}

static int write_value(const json_t *v, struct stw_buf *out, unsigned depth)
{
    if (depth > DEPTH_MAX)
        return -1;
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return write_object(v, out, depth);
    case JSON_ARRAY:
        return write_array(v, out, depth);
    case JSON_STRING:
        stw_buf_json_str(out, json_string_value(v), json_string_length(v));
        break;
    case JSON_INTEGER:
        stw_buf_addi(out, json_integer_value(v));
        break;
    case JSON_REAL:
        write_real(v, out);
        break;
    case JSON_TRUE:
        stw_buf_add(out, "true", 4);
        break;
    case JSON_FALSE:
        stw_buf_add(out, "false", 5);
        break;
    case JSON_NULL:
        stw_buf_add(out, "null", 4);
        break;
    }
    return out->failed ? -1 : 0;
}

int stw_tree_write(const json_t *tree, struct stw_buf *out)
{
    return write_value(tree, out, 0) != 0 || out->failed ? -1 : 0;
}
