/* libvirtd migrates disks in files only if they are on a network file system.
 * The folder of all hosts is on this machine's disk: preloaded into libvirtd,
 * this says that it is on NFS, unless the host has the file NOT_SHARED. Then
 * libvirt refuses each live migration: "Migration without shared storage is
 * unsafe". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define NFS 0x6969
#define NOT_SHARED "/run/not-shared"

static int is_shared(const char *path)
{
    const char *folder = getenv("HOST_SHARED");
    return folder && path && !strncmp(path, folder, strlen(folder)) &&
           access(NOT_SHARED, F_OK);
}

int statfs(const char *path, struct statfs *found)
{
    int (*real)(const char *, struct statfs *) = dlsym(RTLD_NEXT, "statfs");
    int status = real(path, found);
    if (!status && is_shared(path))
        found->f_type = NFS;
    return status;
}

int statfs64(const char *path, struct statfs64 *found)
{
    int (*real)(const char *, struct statfs64 *) = dlsym(RTLD_NEXT, "statfs64");
    int status = real(path, found);
    if (!status && is_shared(path))
        found->f_type = NFS;
    return status;
}
