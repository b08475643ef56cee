/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/footprint.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Drops only whole pages of segments mapped without PF_W: these never differ from the file.  RELRO
 * pages, read-only after relocation, belong to a writable segment. */
static void drop_clean_pages(const struct dl_phdr_info *object, const ElfW(Phdr) * segment)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (object->dlpi_addr + segment->p_vaddr + page - 1) & ~(page - 1);
    uintptr_t end = (object->dlpi_addr + segment->p_vaddr + segment->p_filesz) & ~(page - 1);
    if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W) && end > begin)
        (void)madvise((void *)begin, end - begin,
                      MADV_DONTNEED); /* NOLINT(performance-no-int-to-ptr) */
}

static int each_object(struct dl_phdr_info *object, size_t size, void *ctx)
{
    (void)size, (void)ctx;
    for (unsigned i = 0; i < object->dlpi_phnum; i++)
        drop_clean_pages(object, &object->dlpi_phdr[i]);
    return 0;
}

void stw_footprint_drop_code(void)
{
    (void)dl_iterate_phdr(each_object, NULL);
}

void stw_footprint_shrink(void)
{
    stw_footprint_drop_code();
    stw_footprint_trim();
}

void stw_footprint_trim(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}
