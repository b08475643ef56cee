/* SPDX-License-Identifier: Apache-2.0
 *
 * json_pack() that names the value which is NULL. */
#include "kube/tree.h"

#include <stdarg.h>
#include <stdio.h>

/* Of the last tree that could not be packed. */
static _Thread_local char missing_path[STW_TREE_PATH_LEN];

/* A part of a tree could not be read. */
static _Thread_local bool part_lacks;

/* A walk over a format and its arguments, of which only pointers are looked at: json_pack() has taken or
 * freed what they point to. */
struct walk {
    const char *format;
    va_list args;
    char path[STW_TREE_PATH_LEN]; /* of the value at hand */
    bool found;
};

static char next_mark(struct walk *w)
{
    w->format += strspn(w->format, " \t\n,:");
    return *w->format ? *w->format++ : '\0';
}

/* A text with its lengths and the parts that are appended; true: a NULL is allowed. */
static bool walk_text(struct walk *w, const char **ret)
{
    size_t len = 0;
    *ret = va_arg(w->args, const char *);
    for (;; w->format++) {
        if (*w->format == '#')
            len = (size_t)va_arg(w->args, int);
        else if (*w->format == '%')
            len = va_arg(w->args, size_t);
        else if (*w->format != '+')
            break;
        else if (!va_arg(w->args, const char *))
            *ret = NULL;
    }
    (void)len;
    return *w->format == '?' || *w->format == '*';
}

static void walk_value(struct walk *w, char mark);

static void walk_object(struct walk *w)
{
    size_t len = strlen(w->path);
    while (!w->found && next_mark(w) == 's') {
        const char *key;
        (void)walk_text(w, &key);
        stw_format(w->path + len, sizeof(w->path) - len, "%s%s", len ? "." : "", key ? key : "?");
        walk_value(w, next_mark(w));
        if (!w->found)
            w->path[len] = '\0';
    }
}

static void walk_list(struct walk *w)
{
    size_t len = strlen(w->path), i = 0;
    for (char mark; !w->found && (mark = next_mark(w)) != ']' && mark;) {
        stw_format(w->path + len, sizeof(w->path) - len, "[%zu]", i++);
        walk_value(w, mark);
        if (!w->found)
            w->path[len] = '\0';
    }
}

static void walk_value(struct walk *w, char mark)
{
    const char *text = "";
    double number = 0;
    bool may_be_null = false;
    if (mark == '{')
        walk_object(w);
    else if (mark == '[')
        walk_list(w);
    else if (mark == 's')
        may_be_null = walk_text(w, &text);
    else if (mark == 'o' || mark == 'O')
        text = (const char *)va_arg(w->args, json_t *);
    else if (mark == 'b' || mark == 'i')
        number = va_arg(w->args, int);
    else if (mark == 'I')
        number = (double)va_arg(w->args, json_int_t);
    else if (mark == 'f')
        number = va_arg(w->args, double);
    (void)number;
    may_be_null |= *w->format == '?' || *w->format == '*';
    w->format += *w->format == '?' || *w->format == '*';
    w->found |= !text && !may_be_null;
}

/* The path of the first NULL.  A tree in it may have been packed without a value, too. */
static void note_missing(struct walk *w)
{
    char inner[STW_TREE_PATH_LEN];
    walk_value(w, next_mark(w));
    if (!w->found)
        return;
    memcpy(inner, missing_path, sizeof(inner));
    stw_format(missing_path, sizeof(missing_path), "%.99s%s%.98s", w->path, *inner ? "." : "",
               inner);
}

json_t *stw_tree_pack(const char *format, ...)
{
    struct walk w = {.format = format};
    json_error_t error;
    va_list args;
    va_start(args, format);
    va_copy(w.args, args);
    json_t *tree = json_vpack_ex(&error, 0, format, args);
    if (!tree)
        note_missing(&w);
    va_end(w.args);
    va_end(args);
    return tree;
}

void stw_tree_take_missing(char out[STW_TREE_PATH_LEN])
{
    if (out)
        memcpy(out, missing_path, sizeof(missing_path));
    missing_path[0] = '\0';
}

void stw_tree_note_unread(void)
{
    part_lacks = true;
}

json_t *stw_tree_whole(json_t *tree)
{
    bool lacks = part_lacks;
    part_lacks = false;
    if (!lacks)
        return tree;
    json_decref(tree);
    return NULL;
}

int stw_tree_fail(const char *what, struct stw_error *err)
{
    char path[STW_TREE_PATH_LEN];
    stw_tree_take_missing(path);
    return *path ? stw_fail(err, STW_ERR_INTERNAL, "%s has no value for %s", what, path)
                 : stw_fail(err, STW_ERR_INTERNAL,
                            "%s is NULL: a value in it is NULL, which stw_tree_pack() would name, "
                            "or one of the spec cannot be read, or there is no memory",
                            what);
}
