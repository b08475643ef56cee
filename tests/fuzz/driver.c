/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target over saved inputs, so that they are ordinary tests in every build: each
 * argument is a file or a folder of files.  A missing folder counts as empty. */
#include "base/util.h"

#include "base/error.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX_BYTES ((size_t)64 * 1024 * 1024)

static int run_file(const char *path, unsigned *count)
{
    stw_autofree char *data = NULL;
    size_t len = 0;
    struct stw_error err;

    if (stw_read_file(path, INPUT_MAX_BYTES, &data, &len, &err) != 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    /* A copy of the exact size, so that a sanitizer reports the first byte read past the end. */
    stw_autofree uint8_t *exact = malloc(len ? len : 1);
    if (!exact)
        return -1;
    memcpy(exact, data, len);
    (void)fprintf(stderr, "%s\n", path);
    (void)LLVMFuzzerTestOneInput(exact, len);
    (*count)++;
    return 0;
}

static int run_folder(const char *path, unsigned *count)
{
    int rc = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    for (struct dirent *e = readdir(dir); e && rc == 0; e = readdir(dir)) {
        char *file = NULL;
        if (e->d_name[0] == '.')
            continue;
        if (asprintf(&file, "%s/%s", path, e->d_name) < 0)
            rc = -1;
        else
            rc = run_file(file, count);
        free(file);
    }
    (void)closedir(dir);
    return rc;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) != 0)
            continue;
        if ((S_ISDIR(st.st_mode) ? run_folder : run_file)(argv[i], &count) != 0)
            return 1;
    }
    (void)printf("%u inputs\n", count);
    return 0;
}
