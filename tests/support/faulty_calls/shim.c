/* Counts the calls of the C library for files below a folder, and makes one of them fail.

   Loaded with LD_PRELOAD. `fault_arm` selects the calls and what happens at one of them; `fault_disarm` ends that and
   returns how many calls there were. All other files are left alone. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ = 1, WRITE = 2, NAME = 4, OPEN = 8, SYNC = 16, STATUS = 32 }; /* kinds of calls */
enum { KILL, TORN, SHORT, FAIL }; /* what happens; TORN is SHORT, then KILL; SHORT is half of the bytes */

static char folder[4096];
static atomic_uint armed;
static atomic_long calls;
static long at;
static int action, number, lasting;
static size_t most; /* bytes of one call that reads; 0 is no limit */
static const char *hit_name = "";
static char hit_path[4096];

void fault_arm(const char *path, unsigned kinds, long call, int what, int error, int stays, long bytes) {
  snprintf(folder, sizeof folder, "%s", path);
  at = call, action = what, number = error, lasting = stays, most = (size_t)bytes;
  hit_name = "", hit_path[0] = 0;
  atomic_store(&calls, 0);
  atomic_store(&armed, kinds);
}

long fault_disarm(void) {
  atomic_store(&armed, 0);
  return atomic_load(&calls);
}

const char *fault_name(void) { return hit_name; }
const char *fault_path(void) { return hit_path; }

static int counts(unsigned kind, int fd, const char **path, char *target, size_t size) {
  if (!(atomic_load(&armed) & kind)) return 0;
  if (*path == NULL) {
    char link[64];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, size - 1);
    errno = before;
    if (n < 0) return 0;
    target[n] = 0;
    *path = target;
  }
  return strncmp(*path, folder, strlen(folder)) == 0;
}

/* Whether this call is the one, or comes after it and the fault lasts. */
static int hit(unsigned kind, const char *name, int fd, const char *path) {
  char target[4096];
  if (!counts(kind, fd, &path, target, sizeof target)) return 0;
  long call = atomic_fetch_add(&calls, 1);
  if (at < 0 || (call != at && !(lasting && call > at))) return 0;
  if (call == at) {
    hit_name = name;
    snprintf(hit_path, sizeof hit_path, "%s", path);
  }
  if (action == KILL) kill(getpid(), SIGKILL);
  if (action == FAIL) errno = number;
  return 1;
}

/* The bytes that a call may transfer; -1 if it fails. */
static ssize_t allowed(unsigned kind, const char *name, int fd, size_t size, int *is_hit) {
  const char *path = NULL;
  char target[4096];
  if (most && kind == READ && size > most && counts(kind, fd, &path, target, sizeof target)) size = most;
  *is_hit = hit(kind, name, fd, NULL);
  if (!*is_hit) return (ssize_t)size;
  return action == FAIL ? -1 : (ssize_t)(size > 1 ? size / 2 : size);
}

#define COMMA ,
#define REAL(type, name, ...)             \
  static type (*real)(__VA_ARGS__);       \
  if (real == NULL) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define TRANSFER(name, kind, parameters, types, arguments)     \
  ssize_t name parameters {                                    \
    REAL(ssize_t, name, types);                                \
    int is_hit;                                                \
    ssize_t room = allowed(kind, #name, fd, size, &is_hit);    \
    if (room < 0) return -1;                                   \
    size = (size_t)room;                                       \
    ssize_t done = real arguments;                             \
    if (is_hit && action == TORN) kill(getpid(), SIGKILL);     \
    return done;                                               \
  }
#define POSITIONED(name, kind, pointer, offset_type)                              \
  TRANSFER(name, kind, (int fd, pointer data, size_t size, offset_type offset),   \
           int COMMA pointer COMMA size_t COMMA offset_type, (fd, data, size, offset))
TRANSFER(read, READ, (int fd, void *data, size_t size), int COMMA void * COMMA size_t, (fd, data, size))
TRANSFER(write, WRITE, (int fd, const void *data, size_t size), int COMMA const void * COMMA size_t, (fd, data, size))
POSITIONED(pread, READ, void *, off_t)
POSITIONED(pread64, READ, void *, off64_t)
POSITIONED(pwrite, WRITE, const void *, off_t)
POSITIONED(pwrite64, WRITE, const void *, off64_t)

/* Of several buffers, a call that is limited uses a part of the first. */
#define VECTOR(name, kind, parameters, types, whole, part)                       \
  ssize_t name parameters {                                                      \
    REAL(ssize_t, name, types);                                                  \
    int is_hit;                                                                  \
    size_t size = data[0].iov_len;                                               \
    ssize_t room = allowed(kind, #name, fd, size, &is_hit);                      \
    if (room < 0) return -1;                                                     \
    struct iovec first = {data[0].iov_base, (size_t)room};                       \
    ssize_t done = (size_t)room < size ? real part : real whole;                 \
    if (is_hit && action == TORN) kill(getpid(), SIGKILL);                       \
    return done;                                                                 \
  }
#define PLAIN_VECTOR(name, kind)                                                                          \
  VECTOR(name, kind, (int fd, const struct iovec *data, int count), int COMMA const struct iovec * COMMA int, \
         (fd, data, count), (fd, &first, 1))
#define POSITIONED_VECTOR(name, kind, offset_type)                                             \
  VECTOR(name, kind, (int fd, const struct iovec *data, int count, offset_type offset),        \
         int COMMA const struct iovec * COMMA int COMMA offset_type, (fd, data, count, offset), \
         (fd, &first, 1, offset))
#define FLAGGED_VECTOR(name, kind, offset_type)                                                           \
  VECTOR(name, kind, (int fd, const struct iovec *data, int count, offset_type offset, int flags),        \
         int COMMA const struct iovec * COMMA int COMMA offset_type COMMA int, (fd, data, count, offset, flags), \
         (fd, &first, 1, offset, flags))
PLAIN_VECTOR(readv, READ)
PLAIN_VECTOR(writev, WRITE)
POSITIONED_VECTOR(preadv, READ, off_t)
POSITIONED_VECTOR(preadv64, READ, off64_t)
POSITIONED_VECTOR(pwritev, WRITE, off_t)
POSITIONED_VECTOR(pwritev64, WRITE, off64_t)
FLAGGED_VECTOR(preadv2, READ, off_t)
FLAGGED_VECTOR(preadv64v2, READ, off64_t)
FLAGGED_VECTOR(pwritev2, WRITE, off_t)
FLAGGED_VECTOR(pwritev64v2, WRITE, off64_t)

/* Calls that do not transfer bytes. */
#define SIMPLE(type, failed, name, kind, parameters, types, fd, path, arguments) \
  type name parameters {                                                         \
    REAL(type, name, types);                                                     \
    int is_hit = hit(kind, #name, fd, path);                                     \
    if (is_hit && action == FAIL) return failed;                                 \
    type done = real arguments;                                                  \
    if (is_hit && action == TORN) kill(getpid(), SIGKILL);                       \
    return done;                                                                 \
  }
#define OPENING(name, parameters, types, arguments)                               \
  int name parameters {                                                           \
    REAL(int, name, types);                                                       \
    va_list list;                                                                 \
    va_start(list, flags);                                                        \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;       \
    va_end(list);                                                                 \
    int is_hit = hit(flags & (O_CREAT | O_TRUNC) ? NAME : OPEN, #name, -1, path); \
    if (is_hit && action == FAIL) return -1;                                      \
    int done = real arguments;                                                    \
    if (is_hit && action == TORN) kill(getpid(), SIGKILL);                        \
    return done;                                                                  \
  }
#define TEXT const char *
OPENING(open, (TEXT path, int flags, ...), TEXT COMMA int COMMA ..., (path, flags, mode))
OPENING(open64, (TEXT path, int flags, ...), TEXT COMMA int COMMA ..., (path, flags, mode))
OPENING(openat, (int in, TEXT path, int flags, ...), int COMMA TEXT COMMA int COMMA ..., (in, path, flags, mode))
OPENING(openat64, (int in, TEXT path, int flags, ...), int COMMA TEXT COMMA int COMMA ..., (in, path, flags, mode))
SIMPLE(int, -1, rename, NAME, (TEXT from, TEXT to), TEXT COMMA TEXT, -1, to, (from, to))
SIMPLE(int, -1, renameat, NAME, (int a, TEXT from, int b, TEXT to), int COMMA TEXT COMMA int COMMA TEXT, -1, to,
       (a, from, b, to))
SIMPLE(int, -1, link, NAME, (TEXT from, TEXT to), TEXT COMMA TEXT, -1, to, (from, to))
SIMPLE(int, -1, linkat, NAME, (int a, TEXT from, int b, TEXT to, int flags),
       int COMMA TEXT COMMA int COMMA TEXT COMMA int, -1, to, (a, from, b, to, flags))
SIMPLE(int, -1, unlink, NAME, (TEXT path), TEXT, -1, path, (path))
SIMPLE(int, -1, unlinkat, NAME, (int in, TEXT path, int flags), int COMMA TEXT COMMA int, -1, path, (in, path, flags))
SIMPLE(int, -1, mkdir, NAME, (TEXT path, mode_t mode), TEXT COMMA mode_t, -1, path, (path, mode))
SIMPLE(int, -1, rmdir, NAME, (TEXT path), TEXT, -1, path, (path))
SIMPLE(int, -1, fsync, SYNC, (int fd), int, fd, NULL, (fd))
SIMPLE(int, -1, fdatasync, SYNC, (int fd), int, fd, NULL, (fd))
SIMPLE(int, -1, fchmod, NAME, (int fd, mode_t mode), int COMMA mode_t, fd, NULL, (fd, mode))
SIMPLE(int, -1, fchown, NAME, (int fd, uid_t user, gid_t group), int COMMA uid_t COMMA gid_t, fd, NULL,
       (fd, user, group))
SIMPLE(int, -1, flock, NAME, (int fd, int how), int COMMA int, fd, NULL, (fd, how))
SIMPLE(int, -1, ftruncate, WRITE, (int fd, off_t size), int COMMA off_t, fd, NULL, (fd, size))
SIMPLE(int, -1, ftruncate64, WRITE, (int fd, off64_t size), int COMMA off64_t, fd, NULL, (fd, size))
SIMPLE(int, -1, stat, STATUS, (TEXT path, struct stat *to), TEXT COMMA struct stat *, -1, path, (path, to))
SIMPLE(int, -1, stat64, STATUS, (TEXT path, struct stat64 *to), TEXT COMMA struct stat64 *, -1, path, (path, to))
SIMPLE(int, -1, lstat, STATUS, (TEXT path, struct stat *to), TEXT COMMA struct stat *, -1, path, (path, to))
SIMPLE(int, -1, lstat64, STATUS, (TEXT path, struct stat64 *to), TEXT COMMA struct stat64 *, -1, path, (path, to))
SIMPLE(int, -1, fstat, STATUS, (int fd, struct stat *to), int COMMA struct stat *, fd, NULL, (fd, to))
SIMPLE(int, -1, fstat64, STATUS, (int fd, struct stat64 *to), int COMMA struct stat64 *, fd, NULL, (fd, to))
SIMPLE(DIR *, NULL, opendir, STATUS, (TEXT path), TEXT, -1, path, (path))
