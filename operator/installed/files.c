/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/installed/files.h"

#include "base/buf.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define DEPTH_MAX 64
#define PIECE_BYTES 65536
#define TOO_LARGE "is larger than 16 MiB"

struct file_walk {
    bool recursive;
    stw_file_fn *fn;
    stw_file_error_fn *error;
    void *ctx;
};

/* Reads to the end.  What grows meanwhile, or never ends, is read up to the limit. */
static void read_to_end(const struct file_walk *w, const char *name, int fd)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_MANIFEST_MAX_BYTES + 1);
    text.secret = true;
    while (text.len <= STW_MANIFEST_MAX_BYTES) {
        size_t want = STW_MIN((size_t)PIECE_BYTES, STW_MANIFEST_MAX_BYTES + 1 - text.len);
        char *at = stw_buf_reserve(&text, want);
        if (!at) {
            w->error(w->ctx, name, "out of memory");
            return;
        }
        ssize_t n = read(fd, at, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            w->error(w->ctx, name, strerrordesc_np(errno));
            return;
        }
        text.len += (size_t)n;
        if (n == 0)
            break;
    }
    if (text.len > STW_MANIFEST_MAX_BYTES)
        w->error(w->ctx, name, TOO_LARGE);
    else
        w->fn(w->ctx, name, stw_buf_str(&text), text.len);
}

/* Why it is not read; NULL: it is. */
static const char *refuse_type(const struct stat *st)
{
    switch (st->st_mode & S_IFMT) {
    case S_IFREG:
        return st->st_size > (off_t)STW_MANIFEST_MAX_BYTES ? TOO_LARGE : NULL;
    case S_IFDIR:
        return "is a folder";
    case S_IFIFO:
        return "is a named pipe, which is not read; use - for standard input";
    case S_IFSOCK:
        return "is a socket, which is not read";
    default:
        return "is a device, which is not read";
    }
}

/* Opens nothing but regular files: to open a device may have an effect, and a pipe may wait for ever.
 * Without O_NONBLOCK some files of /proc would wait, too. */
static void read_file(const struct file_walk *w, const char *path)
{
    struct stat st;
    const char *why = stat(path, &st) == 0 ? refuse_type(&st) : strerrordesc_np(errno);
    if (why) {
        w->error(w->ctx, path, why);
        return;
    }
    stw_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    why = fd >= 0 && fstat(fd, &st) == 0 ? refuse_type(&st) : strerrordesc_np(errno);
    if (why)
        w->error(w->ctx, path, why);
    else
        read_to_end(w, path, fd);
}

/* A descriptor of this process, such as the pipe of <(helm template ...) in a shell. */
static bool is_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (stw_streq(path, "/dev/stdin"))
        return true;
    for (size_t i = 0; i < STW_COUNT(folders); i++) {
        size_t len = strlen(folders[i]);
        if (strncmp(path, folders[i], len) == 0 && path[len] &&
            path[len + strspn(path + len, "0123456789")] == '\0')
            return true;
    }
    return false;
}

static void read_descriptor(const struct file_walk *w, const char *path)
{
    stw_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        w->error(w->ctx, path, strerrordesc_np(errno));
    else
        read_to_end(w, path, fd);
}

static bool is_manifest(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (stw_streq(dot, ".yaml") || stw_streq(dot, ".yml") || stw_streq(dot, ".json"));
}

/* Also those that `ls` hides: kubectl applies them. */
static int is_entry(const struct dirent *e)
{
    static const char *const others[] = {".", "..", ".git"};
    for (size_t i = 0; i < STW_COUNT(others); i++)
        if (stw_streq(e->d_name, others[i]))
            return 0;
    return 1;
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
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        if (w->recursive)
            read_folder(w, path, depth + 1);
    } else if (is_manifest(name))
        read_file(w, path);
}

static void read_folder(const struct file_walk *w, const char *path, unsigned depth)
{
    struct dirent **entries;
    if (depth > DEPTH_MAX) {
        w->error(w->ctx, path, "folders nested too deeply");
        return;
    }
    int n = scandir(path, &entries, is_entry, alphasort);
    if (n < 0) {
        w->error(w->ctx, path, strerrordesc_np(errno));
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

void stw_files_each(const char *path, bool recursive, stw_file_fn *fn, stw_file_error_fn *error,
                    void *ctx)
{
    struct file_walk w = {recursive, fn, error, ctx};
    struct stat st;
    if (stw_streq(path, "-")) {
        read_to_end(&w, "<stdin>", STDIN_FILENO);
        return;
    }
    if (is_descriptor(path)) {
        read_descriptor(&w, path);
        return;
    }
    if (stat(path, &st) < 0) {
        error(ctx, path, strerrordesc_np(errno));
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
