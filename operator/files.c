/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/files.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define DEPTH_MAX 64

struct file_walk {
    stw_file_fn *fn;
    stw_file_error_fn *error;
    void *ctx;
};

static void read_stdin(const struct file_walk *w)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_MANIFEST_MAX_BYTES);
    for (;;) {
        char *at = stw_buf_reserve(&text, 65536);
        if (!at) {
            w->error(w->ctx, "<stdin>", "more than 16 MiB");
            return;
        }
        size_t n = fread(at, 1, 65536, stdin);
        text.len += n;
        if (n == 0)
            break;
    }
    if (ferror(stdin))
        w->error(w->ctx, "<stdin>", strerror(errno));
    else
        w->fn(w->ctx, "<stdin>", stw_buf_str(&text), text.len);
}

static void read_file(const struct file_walk *w, const char *path)
{
    struct stw_error err = {0};
    stw_autofree char *text = NULL;
    size_t len = 0;
    if (stw_read_file(path, STW_MANIFEST_MAX_BYTES, &text, &len, &err) != 0)
        w->error(w->ctx, NULL, err.text);
    else
        w->fn(w->ctx, path, text, len);
}

static bool is_manifest(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot != name &&
           (stw_streq(dot, ".yaml") || stw_streq(dot, ".yml") || stw_streq(dot, ".json"));
}

static int is_visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static void read_folder(const struct file_walk *w, const char *path, unsigned depth);

static void read_entry(const struct file_walk *w, const char *folder, const char *name,
                       unsigned depth)
{
    struct stat st;
    char path[4096];
    if (stw_format_whole(path, sizeof(path), "%s/%s", folder, name) != 0) {
        w->error(w->ctx, folder, "path too long");
        return;
    }
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
        read_folder(w, path, depth + 1);
    else if (is_manifest(name))
        read_file(w, path);
}

static void read_folder(const struct file_walk *w, const char *path, unsigned depth)
{
    struct dirent **entries;
    if (depth > DEPTH_MAX) {
        w->error(w->ctx, path, "folders nested too deeply");
        return;
    }
    int n = scandir(path, &entries, is_visible, alphasort);
    if (n < 0) {
        w->error(w->ctx, path, strerror(errno));
        return;
    }
    for (int i = 0; i < n; i++) {
        read_entry(w, path, entries[i]->d_name, depth);
        free(entries[i]);
    }
    free(entries);
}

/* Reports "config/samples/" as "config/samples". */
static void trim_slashes(char *path)
{
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
}

void stw_files_each(const char *path, stw_file_fn *fn, stw_file_error_fn *error, void *ctx)
{
    struct file_walk w = {fn, error, ctx};
    struct stat st;
    if (stw_streq(path, "-")) {
        read_stdin(&w);
        return;
    }
    if (stat(path, &st) < 0) {
        error(ctx, path, strerror(errno));
        return;
    }
    if (!S_ISDIR(st.st_mode)) {
        read_file(&w, path);
        return;
    }
    char folder[4096];
    if (stw_format_whole(folder, sizeof(folder), "%s", path) != 0) {
        error(ctx, path, "path too long");
        return;
    }
    trim_slashes(folder);
    read_folder(&w, folder, 0);
}
