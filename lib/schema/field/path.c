/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/field/path.h"

#include "base/util.h"

#define KEY_SHOWN 256 /* bytes of a map's key; keeps paths bounded */

static bool has_key(const struct stw_path *p)
{
    return stw_json_type(p->key) == STW_JSON_STRING;
}

static void add_key(struct stw_json key, struct stw_buf *out)
{
    char text[KEY_SHOWN + 1];
    if (stw_json_strcpy(key, text, sizeof(text)) == 0)
        stw_buf_adds(out, text);
    else
        stw_buf_addf(out, "(a key of %u bytes)", stw_json_size(key));
}

void stw_path_text(const struct stw_path *p, struct stw_buf *out)
{
    if (p->up)
        stw_path_text(p->up, out);
    if (p->name) {
        if (out->len)
            stw_buf_addc(out, '.');
        stw_buf_adds(out, p->name);
    } else if (has_key(p)) {
        stw_buf_addc(out, '[');
        add_key(p->key, out);
        stw_buf_addc(out, ']');
    } else {
        stw_buf_addf(out, "[%u]", p->index);
    }
}

static void add_escaped(struct stw_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '~')
            stw_buf_adds(out, "~0");
        else if (*text == '/')
            stw_buf_adds(out, "~1");
        else
            stw_buf_addc(out, *text);
    }
}

void stw_path_pointer(const struct stw_path *p, struct stw_buf *out)
{
    if (p->up)
        stw_path_pointer(p->up, out);
    stw_buf_addc(out, '/');
    if (p->name) {
        add_escaped(out, p->name);
    } else if (has_key(p)) {
        stw_autofree char *key = stw_json_strdup(p->key);
        if (!key)
            out->failed = true;
        else
            add_escaped(out, key);
    } else {
        stw_buf_addf(out, "%u", p->index);
    }
}

/* One step: the text between '[' and its ']', or up to the next '.' or '['. */
static struct stw_json follow_path_step(struct stw_json at, const char *text, size_t len)
{
    char word[512];
    int64_t index;
    if (len >= sizeof(word))
        return STW_JSON_NONE;
    memcpy(word, text, len);
    word[len] = '\0';
    if (stw_json_type(at) == STW_JSON_ARRAY)
        return stw_parse_int(word, 0, UINT32_MAX - 1, &index) == 0
                   ? stw_json_at(at, (uint32_t)index)
                   : STW_JSON_NONE;
    return stw_json_get(at, word);
}

struct stw_json stw_path_find(struct stw_json object, const char *text)
{
    struct stw_json at = object;
    while (*text && stw_json_there(at)) {
        if (*text == '[') {
            size_t len = strcspn(++text, "]");
            at = follow_path_step(at, text, len);
            text += len + (text[len] == ']');
        } else {
            text += *text == '.';
            size_t len = strcspn(text, ".[");
            at = follow_path_step(at, text, len);
            text += len;
        }
    }
    return at;
}
