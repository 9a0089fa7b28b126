/* The part of the engine that every model shares: threads, phases, control, memory.
 *
 * A program is a list of phases. A phase is one kernel and a number of tasks, which threads claim one
 * by one: each from its own part, then from the others'. Tasks may also clear borders. The thread that
 * finishes the last task of a phase opens the next one. So a thread that the system has taken away is
 * waited for only if it has claimed a task.
 *
 * A phase may be a loop or a branch instead; the phases of its bodies follow it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#endif
#define MAX_THREADS 64
/* Of builds, whose callers may have an allocator: the allocator of this thread, having it allocate by
 * that, and whether all memory then comes from there. */
#ifndef HG_MEMORY
#define HG_MEMORY() NULL
#define HG_ENTER(memory) ((void)(memory))
#define HG_PLAIN() 0
#endif
/* A small program that has run so often, each time so soon after the last one, is shared. */
#define OFTEN 16
#define SOON_NS 100000
/* How often the caller of a program is asked between iterations whether to go on, and how much more often
 * than that the clock is looked at. */
#define ASK_NS 50000000
#define LOOKS 16

typedef struct {
  char *scratch;
  volatile int64_t *failure;
  int64_t phase;
} hg_thread;
typedef void (*hg_kernel)(char *const *pointers, const int64_t *sizes, int64_t task,
                          const hg_thread *thread);

/* Pointers of kernels to a value that lies elsewhere in each iteration of a loop. */
typedef struct {
  char **slot;
  int64_t offset;
} hg_patch;

/* How a value that iterations hand on changes its size: as its sizes before an iteration tell, or as the
 * iteration finds it in the data. */
#define HG_GROWS 1
#define HG_FOUND 2

/* A value that an iteration reads as the one before left it. Two places alternate: the result's, and a
 * spare one; the first iteration reads the initial value where it is. */
typedef struct {
  const hg_patch *before; /* the readers of the values left */
  int64_t n_before;
  const hg_patch *after; /* the writers of the values to leave */
  int64_t n_after;
  /* Which of the phase's pointers: initial value, result, and spare place or, if HG_FOUND, what an iteration
   * leaves, which is copied. */
  int64_t start, first, second;
  int64_t bytes, begun; /* of the value that an iteration leaves, and of the initial one */
  char *now, *next;
  int64_t grows; /* two places of its own alternate instead, for its size changes: HG_GROWS or HG_FOUND */
  char *memory[2];
  int64_t room[2];
  int64_t appended; /* iterations only add to its end: it stays where it is while there is room */
  int64_t held;     /* bytes that it has there */
} hg_carried;

/* A value of which each iteration reads or writes one slice. */
typedef struct {
  const hg_patch *patches;
  int64_t n_patches;
  int64_t base;        /* which of the phase's pointers; below 0: `memory`, which grows */
  int64_t start, step; /* bytes from there to the first slice, and from one to the next */
  char *memory;
  int64_t room; /* slices for which there is memory */
} hg_scanned;

/* A value of a body whose size differs between iterations. */
typedef struct {
  const hg_patch *patches;
  int64_t n_patches;
  int64_t bytes;
  char *memory;
  int64_t room;
  hg_carried *state; /* whose memory it is, if iterations add to its end */
} hg_moved;

/* A number that differs between iterations: where it is read, or of which phase it is, and which of
 * those computed it is. */
typedef struct {
  int64_t place;
  int64_t which;
} hg_number;

/* The data of a phase that is a loop or a branch. Indices are of the phase's pointers, -1 for none.
 * The phases of the body lie between the phase and `end`; of a branch with a true condition between it
 * and `otherwise`, of one with a false one between that and `end`. */
typedef struct {
  int64_t loops; /* 1: a loop, 0: a branch, 2: sizes that the phases before have found */
  int64_t otherwise, end;
  int64_t iterations, limit; /* the most iterations: a number, or -1 and perhaps where it lies */
  int64_t going;        /* whether to begin */
  int64_t condition;    /* whether to go on, or which body to run */
  int64_t count;        /* where the body reads the number of the iteration */
  int64_t n_carried;
  hg_carried *carried;
  int64_t n_scanned;
  hg_scanned *scanned;
  int64_t iteration; /* the number of the iteration; below 0 while none is being made */
  int64_t made; /* iterations of the last time */
  int64_t sizer; /* the phase that computes the sizes of an iteration, or -1 */
  int64_t finds; /* whether iterations find sizes of states */
  int64_t n_numbers;
  const hg_number *numbers;
  int64_t n_tasks;
  const hg_number *tasks;
  const int64_t *computed; /* where the numbers are computed */
  int64_t n_moved;
  hg_moved *moved;
  int64_t scratch; /* which number is the scratch memory that each thread needs, or -1 */
  int64_t left, stride; /* iterations until the clock is looked at, and from one look to the next */
  int64_t looked, run;  /* when it was last, and in which run */
} hg_control;

/* Planes of pixels whose surroundings are set to one byte while a kernel writes the pixels. */
#define BORDER_AXES 4
#define BORDER_TASK_BYTES 16384
typedef struct hg_border {
  struct hg_border *next;
  char *start;
  int64_t planes, step, plane; /* bytes from one plane to the next, and of one */
  int64_t first, run, fill;    /* bytes before the first pixel, of pixels in a row; the byte */
  int64_t axes, counts[BORDER_AXES], strides[BORDER_AXES]; /* loops over the runs of a plane */
  int64_t planes_of_task, tasks;
  int64_t stays; /* nothing writes over it: the first run sets it for all */
} hg_border;

typedef struct {
  hg_kernel kernel;
  char *const *pointers;
  const int64_t *sizes;
  int64_t tasks;
  int64_t serial; /* done by the thread that comes to it; of a loop or branch, with all in it */
  hg_control *control;
  hg_border *borders;
  int64_t all_tasks; /* with those of the borders */
} hg_phase;

/* Bodies of loops and branches in which a program is. */
typedef struct {
  int64_t phase, end; /* of the loop or branch; the phase behind the body */
} hg_body;

typedef struct {
  int64_t n_phases;
  int64_t threads;
  hg_phase *phases;
  int64_t at; /* the phase that comes next, or is open */
  int64_t depth, alone; /* how many bodies it lies in, and how many of these one thread runs */
  hg_body *bodies;
  char *scratch[MAX_THREADS];
  const void *memory; /* the allocator of threads that go on with it */
  int64_t scratch_bytes;
  volatile int64_t failure[2];
  int64_t *times; /* [2][phase]: nanoseconds, and how often it ran; or null */
  int64_t mark;   /* when the last phase ended */
  const volatile int64_t *stop; /* once it is not 0, loops make no other iteration; or null */
  int64_t (*ask)(void *);       /* whether loops shall make no other iteration, as the caller says */
  void *asker;
  int64_t run, asked_in, asked; /* the number of the run; in which the caller was asked, and when */
  int64_t due;                  /* the caller is to be asked before the next iteration */
  int64_t ended;                /* the caller said so */
  int64_t unsettled;            /* there are borders that stay */
  int64_t small;                /* done before a sleeping worker has woken up */
  int64_t called, often;        /* when a small program began last, and how often so soon again */
} hg_program;
