/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/cache/stub.h"

#include "base/hex.h"
#include "base/util.h"
#include "kube/cache/usage.h"

#define TEXT_MAX (8u << 20)
#define KEYS_MAX (64u << 10)
/* With room in the caches, members of a stub have at most this length as JSON ... */
#define MEMBER_MAX 1024
#define MEMBERS_MAX 8192 /* ... and those of metadata, spec or status together this one. */
#define CONDITIONS_MAX 8192
/* Without room: */
#define FULL_MEMBER_MAX 128
#define FULL_MEMBERS_MAX 1024
#define FULL_KEYS_MAX 2048
#define FULL_KEYS_COUNT 8U /* the most that matter for more than waking an App */

struct shrinking {
    const char *finalizer; /* of the kind, or NULL */
    size_t member_max, members_max, keys_len;
    struct stw_buf out;
};

/* Flags and numbers of spec and status: the schema limits how many there are. */
#define ALWAYS_MAX 16

static void add_members(struct shrinking *s, struct stw_json from, size_t always_max)
{
    struct stw_json key, value;
    const char *before = "";
    size_t begin = s->out.len;
    stw_json_foreach (from, key, value) {
        size_t key_len, len;
        const char *name = stw_json_raw(key, &key_len), *raw = stw_json_raw(value, &len);
        bool fits = len <= s->member_max && s->out.len - begin + key_len + len <= s->members_max;
        if (!fits && len > always_max)
            continue;
        stw_buf_adds(&s->out, before);
        before = ",";
        stw_buf_add(&s->out, name, key_len);
        stw_buf_addc(&s->out, ':');
        stw_buf_add(&s->out, raw, len);
    }
}

/* The elements that fit; `first` (or NULL), if it is one of them, in any case. */
static void add_elements(struct shrinking *s, struct stw_json list, const char *first, size_t max)
{
    struct stw_json key, value;
    const char *before = "";
    size_t begin = s->out.len;
    stw_buf_addc(&s->out, '[');
    stw_json_foreach (list, key, value) {
        size_t len;
        const char *raw = stw_json_raw(value, &len);
        if (s->out.len - begin + len > max && !(first && stw_json_is(value, first)))
            continue;
        stw_buf_adds(&s->out, before);
        before = ",";
        stw_buf_add(&s->out, raw, len);
    }
    stw_buf_addc(&s->out, ']');
}

static bool is_long(const struct shrinking *s, struct stw_json value)
{
    size_t len;
    (void)stw_json_raw(value, &len);
    return len > s->member_max;
}

/* Annotations and finalizers are looked at one by one. */
static void add_metadata(struct shrinking *s, struct stw_json metadata)
{
    struct stw_json notes = stw_json_get(metadata, "annotations");
    struct stw_json finalizers = stw_json_get(metadata, "finalizers");
    add_members(s, metadata, 0);
    if (is_long(s, notes)) {
        stw_buf_adds(&s->out, ",\"annotations\":{");
        add_members(s, notes, 0);
        stw_buf_addc(&s->out, '}');
    }
    if (is_long(s, finalizers)) {
        stw_buf_adds(&s->out, ",\"finalizers\":");
        add_elements(s, finalizers, s->finalizer, s->member_max);
    }
}

static void add_status(struct shrinking *s, struct stw_json status)
{
    struct stw_json conditions = stw_json_get(status, "conditions");
    size_t begin = s->out.len;
    add_members(s, status, ALWAYS_MAX);
    if (!is_long(s, conditions))
        return;
    stw_buf_adds(&s->out, s->out.len > begin ? ",\"conditions\":" : "\"conditions\":");
    add_elements(s, conditions, NULL, CONDITIONS_MAX);
}

static struct stw_hash hash_of(struct stw_json value)
{
    size_t len;
    const char *raw = stw_json_raw(value, &len);
    return stw_hash_bytes(len > 0 ? raw : "", len);
}

static void add_hash(struct stw_buf *out, const char *key, struct stw_hash hash)
{
    char text[STW_HASH_LEN];
    stw_hash_format(hash, text);
    stw_buf_addf(out, ",\"%s\":\"%s\"", key, text);
}

/* The longest member of the spec, or the annotations. */
static void add_largest(struct stw_buf *out, struct stw_json spec, struct stw_json annotations)
{
    struct stw_json key, value, found = STW_JSON_NONE;
    size_t len, most = 0, noted;
    stw_json_foreach (spec, key, value) {
        (void)stw_json_raw(value, &len);
        if (len > most) {
            most = len;
            found = key;
        }
    }
    const char *raw = stw_json_raw(found, &len);
    (void)stw_json_raw(annotations, &noted);
    if (noted > most) {
        most = noted;
        stw_buf_adds(out, ",\"large\":\"metadata.annotations\"");
    } else if (len > 1 && len <= 256) {
        stw_buf_adds(out, ",\"large\":\"spec.");
        stw_buf_add(out, raw + 1, len - 1);
    } else {
        return;
    }
    stw_buf_addf(out, ",\"largeBytes\":%zu", most);
}

/* The first keys, each with its newline, as far as both limits go.  `ret_bytes` gets what the index
 * needs for them. */
static size_t fit_keys(const struct stw_buf *keys, size_t max, size_t max_count, size_t *ret_bytes)
{
    size_t len = 0;
    *ret_bytes = 0;
    for (size_t i = 0; i < max_count && len < keys->len; i++) {
        size_t line = strcspn(keys->data + len, "\n") + 1;
        if (len + line > STW_MIN(max, keys->len))
            break;
        len += line;
        *ret_bytes += stw_index_key_bytes(line - 1);
    }
    return len;
}

static void add_keys(struct stw_buf *out, struct stw_buf *keys, size_t len)
{
    stw_buf_adds(out, ",\"index\":");
    stw_buf_json_str(out, stw_buf_str(keys), len);
}

static void make_stub(struct shrinking *s, struct stw_json root, size_t text_len,
                      struct stw_buf *keys)
{
    struct stw_json spec = stw_json_get(root, "spec"), status = stw_json_get(root, "status");
    struct stw_json metadata = stw_json_get(root, "metadata");
    struct stw_json annotations = stw_json_get(metadata, "annotations");
    const struct stw_hash of_people[] = {hash_of(spec), hash_of(annotations)};
    stw_buf_adds(&s->out, "{\"metadata\":{");
    add_metadata(s, metadata);
    stw_buf_adds(&s->out, "},\"spec\":{");
    add_members(s, spec, ALWAYS_MAX);
    stw_buf_adds(&s->out, "},\"status\":{");
    add_status(s, status);
    stw_buf_addf(&s->out, "},\"stub\":{\"bytes\":%zu", text_len);
    add_hash(&s->out, "spec", stw_hash_bytes(of_people, sizeof(of_people)));
    add_hash(&s->out, "status", hash_of(status));
    add_largest(&s->out, spec, annotations);
    add_keys(&s->out, keys, s->keys_len);
    stw_buf_adds(&s->out, "}}");
}

void stw_stub_shrink(struct stw_buf *text, const struct stw_stub_of *of)
{
    stw_autojson struct stw_json_doc doc = {.trusted = true};
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
    struct stw_error err = {0};
    bool large = text->len > STW_STUB_TEXT_MAX, room = !stw_cache_usage_is_full(of->ns);
    size_t all_bytes, kept_bytes; /* of the index */
    if (text->failed || (room && !large))
        return;
    if (stw_json_scan(&doc, text->data, text->len, &err) != 0) {
        text->failed = err.code == STW_ERR_INTERNAL; /* no memory */
        return;
    }
    struct stw_json root = stw_json_root(&doc);
    if (stw_json_type(root) != STW_JSON_OBJECT) /* packed: short enough */
        return;
    struct shrinking s = {.finalizer = of->finalizer,
                          .member_max = room ? MEMBER_MAX : FULL_MEMBER_MAX,
                          .members_max = room ? MEMBERS_MAX : FULL_MEMBERS_MAX,
                          .out = STW_BUF_INIT(TEXT_MAX)};
    if (of->index)
        of->index(NULL, root, &keys);
    (void)fit_keys(&keys, SIZE_MAX, SIZE_MAX, &all_bytes);
    if (text->len + all_bytes <= FULL_MEMBERS_MAX)
        return;
    s.keys_len = fit_keys(&keys, room ? KEYS_MAX : FULL_KEYS_MAX, room ? SIZE_MAX : FULL_KEYS_COUNT,
                          &kept_bytes);
    make_stub(&s, root, text->len, &keys);
    if (!s.out.failed && (large || s.out.len + kept_bytes < (text->len + all_bytes) / 4 * 3)) {
        stw_buf_done(text); /* it may have had 8 MiB */
        *text = s.out;
        return;
    }
    text->failed = s.out.failed;
    stw_buf_done(&s.out);
}

bool stw_stub_is(struct stw_json root)
{
    return stw_json_there(stw_json_get(root, "stub"));
}

void stw_stub_index(struct stw_json root, struct stw_buf *out)
{
    stw_json_str(stw_json_path(root, "stub.index"), out);
}
