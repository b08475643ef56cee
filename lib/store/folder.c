/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder of a volume.  An upload is a file ".<name>.<random>.partial" in the same folder.  It is
 * on disk (fsync) before it is renamed, so that a file with a final name is a complete snapshot. */
#include "base/backoff.h"
#include "base/clock.h"
#include "base/util.h"
#include "store/store_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARTIAL ".partial"
#define PARTIAL_DIGITS 16
#define NAME_LEN_MAX 228 /* 254 with what a partial name adds */
#define READ_BYTES (256u << 10)

struct folder {
    struct stw_store store;
    int dir;
};

struct folder_upload {
    struct stw_upload upload;
    int fd;
    char name[256], partial[256];
};

static struct folder *folder_of(struct stw_store *s)
{
    return (struct folder *)s;
}

static struct folder_upload *upload_of(struct stw_upload *u)
{
    return (struct folder_upload *)u;
}

static int fail_by_errno(enum stw_store_trouble *trouble, const char *what, const char *name,
                         struct stw_error *err)
{
    enum stw_store_trouble t = errno == ENOSPC || errno == EDQUOT ? STW_STORE_FULL
                               : errno == EACCES || errno == EPERM || errno == EROFS
                                   ? STW_STORE_DENIED
                               : errno == ENOENT ? STW_STORE_NOT_FOUND
                                                 : STW_STORE_FAILED;
    return stw_store_fail(trouble, t, err, "cannot %s \"%s\": %s", what, name,
                          strerrordesc_np(errno));
}

/* A key is a plain file name here, without a leading dot: dot files are unfinished uploads. */
static int check_file_name(const char *key, enum stw_store_trouble *trouble, struct stw_error *err)
{
    if (!*key || *key == '.' || strchr(key, '/') || strlen(key) > NAME_LEN_MAX)
        return stw_store_fail(trouble, STW_STORE_FAILED, err,
                              "\"%s\" cannot be the name of a snapshot in a folder", key);
    return 0;
}

/* --- uploads */

static void upload_free(struct folder_upload *u)
{
    stw_closep(&u->fd);
    free(u);
}

static int folder_begin(struct stw_store *s, const char *key, struct stw_upload **ret,
                        enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct folder_upload *u;
    if (check_file_name(key, trouble, err) != 0)
        return -1;
    if (!(u = calloc(1, sizeof(*u))))
        return stw_store_fail_memory(trouble, err);
    u->upload.store = s;
    stw_format(u->name, sizeof(u->name), "%s", key);
    stw_format(u->partial, sizeof(u->partial), ".%.*s.%016llx" PARTIAL, NAME_LEN_MAX, key,
               (unsigned long long)stw_random());
    u->fd = openat(folder_of(s)->dir, u->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (u->fd < 0) {
        (void)fail_by_errno(trouble, "create", u->partial, err);
        upload_free(u);
        return -1;
    }
    *ret = &u->upload;
    return 0;
}

static int folder_write(struct stw_upload *upload, const void *data, size_t len,
                        enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct folder_upload *u = upload_of(upload);
    const char *at = data;
    while (len > 0) {
        if (stw_store_check(upload->store, trouble, err) != 0)
            return -1;
        ssize_t n = write(u->fd, at, STW_MIN(len, (size_t)1 << 20));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_by_errno(trouble, "write", u->name, err);
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static void folder_abort(struct stw_upload *upload)
{
    struct folder_upload *u = upload_of(upload);
    (void)unlinkat(folder_of(upload->store)->dir, u->partial, 0);
    upload_free(u);
}

static int folder_finish(struct stw_upload *upload, enum stw_store_trouble *trouble,
                         struct stw_error *err)
{
    struct folder_upload *u = upload_of(upload);
    int dir = folder_of(upload->store)->dir;
    if (fsync(u->fd) != 0 || renameat(dir, u->partial, dir, u->name) != 0) {
        (void)fail_by_errno(trouble, "finish", u->name, err);
        folder_abort(upload);
        return -1;
    }
    int rc = fsync(dir) == 0 ? 0 : fail_by_errno(trouble, "finish", u->name, err);
    upload_free(u);
    return rc;
}

/* --- reading */

static int read_file_into_sink(struct stw_store *s, int fd, const char *key,
                               stw_store_sink_fn *sink, void *ctx, enum stw_store_trouble *trouble,
                               struct stw_error *err)
{
    stw_autofree char *piece = malloc(READ_BYTES);
    if (!piece)
        return stw_store_fail_memory(trouble, err);
    for (;;) {
        ssize_t n = read(fd, piece, READ_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_by_errno(trouble, "read", key, err);
        if (n == 0)
            return 0;
        if (stw_store_check(s, trouble, err) != 0)
            return -1;
        if (sink(ctx, piece, (size_t)n, err) != 0)
            return -1;
    }
}

static int folder_read(struct stw_store *s, const char *key, stw_store_sink_fn *sink, void *ctx,
                       enum stw_store_trouble *trouble, struct stw_error *err)
{
    if (check_file_name(key, trouble, err) != 0)
        return -1;
    stw_autoclose int fd =
        openat(folder_of(s)->dir, key, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return fail_by_errno(trouble, "open", key, err);
    return read_file_into_sink(s, fd, key, sink, ctx, trouble, err);
}

/* --- listing */

struct folder_entry {
    const char *name;
    struct stat st;
};
typedef int entry_fn(struct folder *f, const struct folder_entry *e, void *ctx);

/* Calls `fn` for each regular file; -1 from `fn` ends the loop. */
static int each_entry(struct folder *f, entry_fn *fn, void *ctx, enum stw_store_trouble *trouble,
                      struct stw_error *err)
{
    int fd = openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *de;
    if (!d) {
        rc = fail_by_errno(trouble, "list", "the folder", err);
        stw_closep(&fd);
        return rc;
    }
    while (rc == 0 && (de = readdir(d))) {
        struct folder_entry e = {.name = de->d_name};
        if (fstatat(f->dir, de->d_name, &e.st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(e.st.st_mode))
            rc = fn(f, &e, ctx);
    }
    (void)closedir(d);
    return rc;
}

struct folder_listing {
    const char *prefix;
    stw_store_each_fn *each;
    void *ctx;
};

static int list_entry(struct folder *f, const struct folder_entry *e, void *ctx)
{
    const struct folder_listing *l = ctx;
    (void)f;
    if (e->name[0] == '.' || strncmp(e->name, l->prefix, strlen(l->prefix)) != 0)
        return 0;
    return l->each(l->ctx, e->name, (uint64_t)e->st.st_size);
}

static int folder_list(struct stw_store *s, const char *prefix, stw_store_each_fn *each, void *ctx,
                       enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct folder_listing l = {prefix, each, ctx};
    return each_entry(folder_of(s), list_entry, &l, trouble, err);
}

struct sweep {
    const char *prefix;
    const struct stw_store_filter *mine;
    int64_t before_us;
    unsigned *count;
};

static int sweep_entry(struct folder *f, const struct folder_entry *e, void *ctx)
{
    const struct sweep *w = ctx;
    size_t len = strlen(e->name), tail = sizeof(PARTIAL) - 1;
    bool ours = e->name[0] == '.' && strncmp(e->name + 1, w->prefix, strlen(w->prefix)) == 0 &&
                len > tail && stw_streq(e->name + len - tail, PARTIAL);
    size_t around = strlen(".") + strlen(".") + PARTIAL_DIGITS + tail;
    char key[256];
    if (ours && len > around)
        stw_format(key, sizeof(key), "%.*s", (int)(len - around), e->name + 1);
    ours = ours && len > around && w->mine->mine(w->mine->ctx, key);
    if (ours && (int64_t)e->st.st_mtime < w->before_us / 1000000 &&
        unlinkat(f->dir, e->name, 0) == 0)
        (*w->count)++;
    return 0;
}

static int folder_clean(struct stw_store *s, const char *prefix,
                        const struct stw_store_filter *mine, int64_t before_us, unsigned *ret_count,
                        enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct sweep w = {prefix, mine, before_us, ret_count};
    return each_entry(folder_of(s), sweep_entry, &w, trouble, err);
}

static int folder_remove(struct stw_store *s, const char *key, enum stw_store_trouble *trouble,
                         struct stw_error *err)
{
    if (check_file_name(key, trouble, err) != 0)
        return -1;
    if (unlinkat(folder_of(s)->dir, key, 0) == 0 || errno == ENOENT)
        return 0;
    return fail_by_errno(trouble, "delete", key, err);
}

/* --- the store */

static void folder_destroy(struct stw_store *s)
{
    stw_closep(&folder_of(s)->dir);
    stw_store_done(s);
    free(s);
}

static const struct stw_store_ops ops = {
    .begin = folder_begin,
    .write = folder_write,
    .finish = folder_finish,
    .abort = folder_abort,
    .read = folder_read,
    .list = folder_list,
    .clean = folder_clean,
    .remove = folder_remove,
    .destroy = folder_destroy,
};

int stw_store_folder_create(const char *path, struct stw_store **ret, struct stw_error *err)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct folder *f;
    if (dir < 0)
        return stw_fail(err, errno == ENOENT ? STW_ERR_NOT_FOUND : STW_ERR_INTERNAL,
                        "cannot open the folder \"%s\": %s", path, strerrordesc_np(errno));
    f = calloc(1, sizeof(*f));
    if (!f || stw_store_init(&f->store, &ops, err) != 0) {
        free(f);
        close(dir);
        return stw_fail_memory(err);
    }
    f->dir = dir;
    *ret = &f->store;
    return 0;
}
