// A stand-in for AMD's libamdhip64.so, for tests on machines without a GPU: the functions that flylab calls, with the
// signatures of HIP 7. It has devices, memory, modules, streams and events, and no kernels: each launch goes to a
// callback. Streams are lazy: what is put into one happens when somebody waits for it, so that a forgotten
// synchronisation, or memory given back too early, shows. Every call is logged.
//
// Tests script it through the functions named standin_*.
#include <elf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, CONFIGURATION = 9, NO_DEVICE = 100, BAD_DEVICE = 101, BAD_IMAGE = 200,
       NO_BINARY = 209, BAD_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600 };
enum { MOST_DEVICES = 8, MOST_FAILURES = 16 };

// Where fields of hipDeviceProp_tR0600 begin, in bytes.
enum { NAME = 0, TOTAL_MEMORY = 288, LDS_BYTES = 296, COMPUTE_UNITS = 388, ARCH = 1160 };

typedef struct { char arch[64], name[64]; size_t memory, used; int lds, pageable, error; double clock; } Device;
typedef struct Memory { char *start; size_t size; int device; struct Memory *next; } Memory;
typedef struct Module {
  char *image;
  size_t size;
  int device;
  struct { char name[64], *start; size_t size; } variables[4];
  struct Module *next;
} Module;
typedef struct { char name[256]; Module *module; unsigned lds, kernarg; } Function;
typedef struct { int device, recorded, done; double time; } Event;
typedef struct Operation {
  enum { LAUNCH, COPY, SET, RECORD, WAIT } kind;
  uint64_t number;
  Function *function;
  unsigned extents[6], smem;
  char *kernarg, *to;
  const char *from;
  size_t size;
  int value;
  Event *event;
  struct Stream *stream;
  struct Operation *next;
} Operation;
typedef struct Stream { int device, beside; Operation *first, *last; struct Stream *next; } Stream;
typedef int Callback(const char *kernel, const void *image, size_t size, const unsigned *extents, unsigned smem,
                     void *kernarg, size_t kernarg_size, int device);

int64_t entered;           // CLOCK_MONOTONIC in ns at the last entry of hipModuleLaunchKernel
uint64_t standin_launches; // how often it was entered
int standin_idle;          // 1: a launch notes its time and does nothing else
double standin_launch_ms = 0.25;

static pthread_mutex_t lock;
static Device devices[MOST_DEVICES];
static int count, lookup_error;
static _Thread_local int current;
static Memory *memories;
static Module *modules;
static Stream *streams, defaults[MOST_DEVICES];
static uint64_t issued;
static Callback *callback;
static struct { char function[64]; int code, after; } failures[MOST_FAILURES];
static char *text;
static size_t text_size, text_room;

__attribute__((constructor)) static void start(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE); // a callback may collect, and so unload
  pthread_mutex_init(&lock, &attributes);
}

// Every function: take the lock, log the call, fail where the script says so.
static void unlock(int *unused) { pthread_mutex_unlock(&lock); }
static int enter(const char *function, const char *format, ...) {
  char line[512];
  va_list list;
  va_start(list, format);
  int length = snprintf(line, sizeof line, "%s ", function);
  length += vsnprintf(line + length, sizeof line - length - 1, format, list);
  va_end(list);
  if (length > (int)sizeof line - 2) length = sizeof line - 2;
  line[length++] = '\n';
  if (text_size + length + 1 > text_room) text = realloc(text, text_room = 2 * (text_size + length + 1));
  memcpy(text + text_size, line, length);
  text[text_size += length] = 0;
  for (int n = 0; n < MOST_FAILURES; n++)
    if (failures[n].code && !strcmp(failures[n].function, function) && failures[n].after-- == 0) {
      int code = failures[n].code;
      failures[n].code = 0;
      return code;
    }
  return OK;
}
#define ENTER(...)                                                                                                     \
  __attribute__((cleanup(unlock))) int held = pthread_mutex_lock(&lock);                                               \
  int scripted = enter(__func__, __VA_ARGS__);                                                                         \
  if (scripted) return scripted

// Memory.

static Memory *holding(const void *start, size_t size) {
  for (Memory *m = memories; m; m = m->next)
    if (m->start <= (char *)start && (char *)start + size <= m->start + m->size) return m;
  return NULL;
}

int hipMemGetInfo(size_t *free_bytes, size_t *total) {
  ENTER("");
  *total = devices[current].memory, *free_bytes = *total - devices[current].used;
  return OK;
}

// hipPointerAttribute_t; type 2 is memory of a device.
typedef struct { int type, device; void *on_device, *on_host; int managed; unsigned flags; } Attributes;

int hipPointerGetAttributes(Attributes *attributes, const void *address) {
  ENTER("%p", address);
  Memory *m = holding(address, 1);
  if (!m) return INVALID;
  *attributes = (Attributes){.type = 2, .device = m->device, .on_device = (void *)address};
  return OK;
}

int hipMalloc(void **result, size_t size) {
  ENTER("%zu", size);
  if (!count) return NO_DEVICE;
  *result = NULL;
  if (devices[current].used + size > devices[current].memory) return NO_MEMORY;
  Memory *m = malloc(sizeof *m);
  *m = (Memory){aligned_alloc(256, (size + 511) / 256 * 256), size, current, memories};
  if (!m->start) return free(m), NO_MEMORY;
  memset(m->start, 0xCD, size < 1 << 20 ? size : 1 << 20); // memory of a device is not zero at first
  devices[current].used += size;
  memories = m;
  *result = m->start;
  return OK;
}

// Streams.

static int run(Operation *op, int device) {
  Device *d = &devices[device];
  if (d->error) return d->error;
  switch (op->kind) {
  case LAUNCH:
    d->clock += standin_launch_ms;
    if (callback)
      d->error = callback(op->function->name, op->function->module->image, op->function->module->size, op->extents,
                          op->smem, op->kernarg, op->function->kernarg, device);
    break;
  case COPY: memcpy(op->to, op->from, op->size); break;
  case SET: memset(op->to, op->value, op->size); break;
  case RECORD: op->event->time = d->clock, op->event->done = 1; break;
  case WAIT: break;
  }
  return d->error;
}

static int drain(Stream *stream, uint64_t last);

// What a device's default stream and its other streams wait for: each other, but for those beside it.
static int before(Stream *stream, uint64_t number) {
  int code = OK, device = stream->device;
  if (stream->beside) return OK;
  if (stream != &defaults[device]) return drain(&defaults[device], number);
  for (Stream *other = streams; other && !code; other = other->next)
    if (other->device == device && !other->beside) code = drain(other, number);
  return code;
}

static int finish(Event *event) {
  int code = OK;
  for (Stream *s = streams; s && !code && event->recorded && !event->done; s = s->next) code = drain(s, UINT64_MAX);
  for (int d = 0; d < count && !code && event->recorded && !event->done; d++) code = drain(&defaults[d], UINT64_MAX);
  return code;
}

static int drain(Stream *stream, uint64_t last) {
  int code = devices[stream->device].error;
  while (stream->first && stream->first->number < last) {
    Operation *op = stream->first;
    if (!(stream->first = op->next)) stream->last = NULL;
    int failed = op->kind == WAIT ? finish(op->event) : before(stream, op->number);
    if (!failed) failed = run(op, stream->device);
    code = code ? code : failed;
    free(op->kernarg), free(op);
  }
  return code;
}

static int drain_all(int device, int beside) {
  int code = drain(&defaults[device], UINT64_MAX);
  for (Stream *s = streams; s; s = s->next)
    if (s->device == device && s->beside <= beside) {
      int failed = drain(s, UINT64_MAX);
      code = code ? code : failed;
    }
  return code;
}

static Stream *of(Stream *given) {
  if (!given) return &defaults[current];
  for (Stream *s = streams; s; s = s->next)
    if (s == given) return s;
  return NULL;
}

static int put(Stream *stream, Operation op) {
  if (devices[stream->device].error) return free(op.kernarg), devices[stream->device].error;
  Operation *made = malloc(sizeof *made);
  *made = op;
  made->number = issued++, made->next = NULL, made->stream = stream;
  if (stream->last) stream->last->next = made;
  else stream->first = made;
  stream->last = made;
  return OK;
}

int hipStreamCreateWithFlags(Stream **result, unsigned flags) {
  ENTER("%u", flags);
  if (!count) return NO_DEVICE;
  *result = malloc(sizeof **result);
  **result = (Stream){current, flags & 1, NULL, NULL, streams}; // 1: beside the default stream
  streams = *result;
  return OK;
}
int hipStreamDestroy(Stream *stream) {
  ENTER("%p", (void *)stream);
  if (!stream || !of(stream)) return BAD_HANDLE;
  int code = drain(stream, UINT64_MAX);
  Stream **link = &streams;
  while (*link != stream) link = &(*link)->next;
  *link = stream->next;
  free(stream);
  return code;
}
int hipStreamSynchronize(Stream *stream) {
  ENTER("%p", (void *)stream);
  Stream *found = of(stream);
  return !found ? BAD_HANDLE : found == &defaults[current] ? drain_all(current, 0) : drain(found, UINT64_MAX);
}
int hipStreamQuery(Stream *stream) {
  ENTER("%p", (void *)stream);
  Stream *found = of(stream);
  return !found ? BAD_HANDLE : devices[found->device].error ? devices[found->device].error
         : found->first ? NOT_READY : OK;
}
int hipStreamGetDevice(Stream *stream, int *device) {
  ENTER("%p", (void *)stream);
  Stream *found = of(stream);
  if (!found) return BAD_HANDLE;
  *device = found->device;
  return OK;
}
int hipStreamWaitEvent(Stream *stream, Event *event, unsigned flags) {
  ENTER("%p %p", (void *)stream, (void *)event);
  Stream *found = of(stream);
  return found && event ? put(found, (Operation){.kind = WAIT, .event = event}) : BAD_HANDLE;
}
int hipDeviceSynchronize(void) {
  ENTER("");
  return count ? drain_all(current, 1) : NO_DEVICE;
}

int hipFree(void *start) {
  ENTER("%p", start);
  if (!start) return OK;
  for (Memory **link = &memories; *link; link = &(*link)->next)
    if ((*link)->start == start) {
      Memory *m = *link;
      int code = drain_all(m->device, 1);
      for (link = &memories; *link != m; link = &(*link)->next);
      *link = m->next;
      devices[m->device].used -= m->size;
      free(m->start), free(m);
      return code;
    }
  return INVALID;
}

// A copy's sides that are of the device must lie in memory of the device. kind: 1 to the device, 2 from it, 3 on it.
static int copy(void *to, const void *from, size_t size, int kind, Stream *stream) {
  Stream *found = of(stream);
  if (!found) return BAD_HANDLE;
  if (kind < 1 || kind > 3 || (kind != 2 && !holding(to, size)) || (kind != 1 && !holding(from, size))) return INVALID;
  return put(found, (Operation){.kind = COPY, .to = to, .from = from, .size = size});
}
int hipMemcpyAsync(void *to, const void *from, size_t size, int kind, Stream *stream) {
  ENTER("%p %p %zu %d %p", to, from, size, kind, (void *)stream);
  return copy(to, from, size, kind, stream);
}
int hipMemcpy(void *to, const void *from, size_t size, int kind) {
  ENTER("%p %p %zu %d", to, from, size, kind);
  int code = copy(to, from, size, kind, NULL);
  return code ? code : drain(&defaults[current], UINT64_MAX);
}
int hipMemsetAsync(void *to, int value, size_t size, Stream *stream) {
  ENTER("%p %d %zu %p", to, value, size, (void *)stream);
  Stream *found = of(stream);
  if (!found) return BAD_HANDLE;
  return holding(to, size) ? put(found, (Operation){.kind = SET, .to = to, .value = value, .size = size}) : INVALID;
}

// Events. A kernel takes `standin_launch_ms` of a device's clock, all else no time.

int hipEventCreateWithFlags(Event **result, unsigned flags) {
  ENTER("%u", flags);
  if (!count) return NO_DEVICE;
  *result = calloc(1, sizeof **result);
  (*result)->device = current;
  return OK;
}
int hipEventDestroy(Event *event) {
  ENTER("%p", (void *)event);
  if (!event) return BAD_HANDLE;
  finish(event);
  free(event);
  return OK;
}
int hipEventRecord(Event *event, Stream *stream) {
  ENTER("%p %p", (void *)event, (void *)stream);
  Stream *found = of(stream);
  if (!event || !found || found->device != event->device) return BAD_HANDLE;
  event->recorded = 1, event->done = 0;
  return put(found, (Operation){.kind = RECORD, .event = event});
}
int hipEventSynchronize(Event *event) {
  ENTER("%p", (void *)event);
  return event ? finish(event) : BAD_HANDLE;
}
int hipEventQuery(Event *event) {
  ENTER("%p", (void *)event);
  return !event ? BAD_HANDLE : event->recorded && !event->done ? NOT_READY : OK;
}
int hipEventElapsedTime(float *ms, Event *start, Event *stop) {
  ENTER("%p %p", (void *)start, (void *)stop);
  if (!start || !stop || !start->recorded || !stop->recorded || start->device != stop->device) return BAD_HANDLE;
  if (!start->done || !stop->done) return NOT_READY;
  *ms = (float)(stop->time - start->time);
  return OK;
}

// Devices.

int hipGetLastError(void) {
  ENTER("");
  return OK;
}
int hipGetDeviceCount(int *result) {
  ENTER("");
  *result = count;
  return lookup_error ? lookup_error : count ? OK : NO_DEVICE;
}
int hipGetDevice(int *result) {
  ENTER("");
  *result = current;
  return count ? OK : NO_DEVICE;
}
int hipSetDevice(int device) {
  ENTER("%d", device);
  if (device < 0 || device >= count) return BAD_DEVICE;
  current = device;
  return OK;
}
int hipRuntimeGetVersion(int *version) {
  ENTER("");
  *version = 71526000; // 7.15.26000
  return OK;
}
int hipDeviceGetAttribute(int *result, int attribute, int device) {
  ENTER("%d %d", attribute, device);
  if (device < 0 || device >= count) return BAD_DEVICE;
  if (attribute != 65) return INVALID; // hipDeviceAttributePageableMemoryAccess
  *result = devices[device].pageable;
  return OK;
}
int hipGetDevicePropertiesR0600(char *properties, int device) {
  ENTER("%d", device);
  if (device < 0 || device >= count) return BAD_DEVICE;
  strcpy(properties + NAME, devices[device].name);
  strcpy(properties + ARCH, devices[device].arch);
  *(size_t *)(properties + TOTAL_MEMORY) = devices[device].memory;
  *(size_t *)(properties + LDS_BYTES) = devices[device].lds;
  *(int *)(properties + COMPUTE_UNITS) = strncmp(devices[device].arch, "gfx950", 6) ? 304 : 256;
  return OK;
}

// Modules: ELF files, whose kernel descriptors say what a launch has to bring.

static const Elf64_Shdr *section(const Module *m, unsigned type) {
  const Elf64_Ehdr *head = (void *)m->image;
  const Elf64_Shdr *sections = (void *)(m->image + head->e_shoff);
  for (int n = 0; n < head->e_shnum; n++)
    if (sections[n].sh_type == type) return &sections[n];
  return NULL;
}
static const char *at(const Module *m, uint64_t address) {
  const Elf64_Ehdr *head = (void *)m->image;
  const Elf64_Phdr *segments = (void *)(m->image + head->e_phoff);
  for (int n = 0; n < head->e_phnum; n++)
    if (segments[n].p_type == PT_LOAD && segments[n].p_vaddr <= address &&
        address < segments[n].p_vaddr + segments[n].p_filesz)
      return m->image + segments[n].p_offset + (address - segments[n].p_vaddr);
  return NULL;
}
static const Elf64_Sym *symbol(const Module *m, const char *wanted) {
  const Elf64_Shdr *table = section(m, SHT_DYNSYM);
  if (!table) return NULL;
  const char *names = m->image + ((Elf64_Shdr *)(m->image + ((Elf64_Ehdr *)m->image)->e_shoff))[table->sh_link].sh_offset;
  const Elf64_Sym *symbols = (void *)(m->image + table->sh_offset);
  for (size_t n = 0; n < table->sh_size / sizeof *symbols; n++)
    if (!strcmp(names + symbols[n].st_name, wanted)) return &symbols[n];
  return NULL;
}
static const unsigned *descriptor(const Module *m, const char *kernel) {
  char wanted[300];
  snprintf(wanted, sizeof wanted, "%s.kd", kernel);
  const Elf64_Sym *found = symbol(m, wanted);
  return found ? (void *)at(m, found->st_value) : NULL;
}

int hipModuleLoadData(Module **result, const void *image) {
  ENTER("");
  const Elf64_Ehdr *head = image;
  if (!count) return NO_DEVICE;
  if (memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_machine != 224 || head->e_type != ET_DYN) return BAD_IMAGE;
  unsigned machine = !strncmp(devices[current].arch, "gfx942", 6) ? 0x4c : !strncmp(devices[current].arch, "gfx950", 6) ? 0x4f : 0;
  if ((head->e_flags & 0xff) != machine) return NO_BINARY;
  if (devices[current].error) return devices[current].error;
  Module *m = calloc(1, sizeof *m);
  m->next = modules, modules = m;
  m->size = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
  m->image = memcpy(malloc(m->size), image, m->size);
  m->device = current;
  *result = m;
  return OK;
}
int hipModuleUnload(Module *m) {
  ENTER("%p", (void *)m);
  int code = drain_all(m->device, 1);
  free(m->image);
  m->image = NULL; // the record stays: a later launch from it is seen
  return code;
}
// A variable's memory; only of variables that are zero at first.
int hipModuleGetGlobal(void **address, size_t *size, Module *m, const char *name) {
  ENTER("%s", name);
  const Elf64_Sym *found = m->image ? symbol(m, name) : NULL;
  if (!found) return NOT_FOUND;
  int n = 0;
  while (m->variables[n].start && strcmp(m->variables[n].name, name)) n++;
  if (!m->variables[n].start) {
    snprintf(m->variables[n].name, sizeof m->variables[n].name, "%s", name);
    m->variables[n].size = found->st_size, m->variables[n].start = calloc(1, found->st_size);
    Memory *memory = malloc(sizeof *memory);
    *memory = (Memory){m->variables[n].start, found->st_size, m->device, memories};
    memories = memory;
  }
  *address = m->variables[n].start, *size = m->variables[n].size;
  return OK;
}
int hipModuleGetFunction(Function **result, Module *m, const char *name) {
  ENTER("%s", name);
  const unsigned *found = m->image ? descriptor(m, name) : NULL;
  if (!found) return NOT_FOUND;
  *result = malloc(sizeof **result);
  **result = (Function){.module = m, .lds = found[0], .kernarg = found[2]};
  snprintf((*result)->name, sizeof(*result)->name, "%s", name);
  return OK;
}
int hipModuleLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned smem, Stream *stream, void **parameters, void **extra) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  entered = now.tv_sec * 1000000000LL + now.tv_nsec;
  standin_launches++;
  if (standin_idle) return OK;
  ENTER("%s %u %u %u %u %u %u %u %p", f->name, gx, gy, gz, bx, by, bz, smem, (void *)stream);
  Stream *found = of(stream);
  if (!found) return BAD_HANDLE;
  if (!f->module->image || found->device != f->module->device) return BAD_HANDLE;
  uint64_t block = (uint64_t)bx * by * bz;
  if (!block || block > 1024 || !gx || !gy || !gz) return CONFIGURATION;
  if (f->lds + smem > (unsigned)devices[found->device].lds) return INVALID;
  if (parameters || !extra || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3 ||
      *(size_t *)extra[3] != f->kernarg)
    return INVALID;
  char *kernarg = memcpy(malloc(f->kernarg + 1), extra[1], f->kernarg);
  return put(found, (Operation){.kind = LAUNCH, .function = f, .extents = {gx, gy, gz, bx, by, bz}, .smem = smem,
                                .kernarg = kernarg});
}
// The script.

// Forget everything, and have `n` devices from now on, which `standin_device` describes.
void standin_reset(int n, int error) {
  pthread_mutex_lock(&lock);
  for (int d = 0; d < MOST_DEVICES; d++) devices[d].error = OK, defaults[d] = (Stream){.device = d};
  streams = NULL, memories = NULL, modules = NULL, text_size = 0, callback = NULL, count = n, lookup_error = error, current = 0;
  memset(failures, 0, sizeof failures), memset(devices, 0, sizeof devices);
  standin_idle = 0, standin_launches = 0, standin_launch_ms = 0.25;
  if (text) text[0] = 0;
  pthread_mutex_unlock(&lock);
}
void standin_device(int n, const char *arch, const char *name, size_t memory, int lds, int pageable) {
  devices[n] = (Device){.memory = memory, .lds = lds, .pageable = pageable};
  snprintf(devices[n].arch, sizeof devices[n].arch, "%s", arch);
  snprintf(devices[n].name, sizeof devices[n].name, "%s", name);
}
// The call of `function` after the next `after` ones returns `code`.
void standin_fail(const char *function, int code, int after) {
  for (int n = 0; n < MOST_FAILURES; n++)
    if (!failures[n].code) {
      snprintf(failures[n].function, sizeof failures[n].function, "%s", function);
      failures[n].code = code, failures[n].after = after;
      return;
    }
}
// The memory of the n-th variable, that was asked for, of the module with this image; 0 after the last.
int standin_variable(const void *image, int n, const char **name, void **start, size_t *size) {
  for (Module *m = modules; m; m = m->next)
    if (m->image == image && n < 4 && m->variables[n].start)
      return *name = m->variables[n].name, *start = m->variables[n].start, *size = m->variables[n].size, 1;
  return 0;
}
void standin_on_launch(Callback *given) { callback = given; }
void standin_forget_log(void) {
  pthread_mutex_lock(&lock);
  text_size = 0;
  if (text) text[0] = 0;
  pthread_mutex_unlock(&lock);
}
const char *standin_log(void) { return text ? text : ""; }
size_t standin_used(int device) { return devices[device].used; }
// The n-th live allocation of a device; 0 after the last.
int standin_memory(int device, int n, void **start, size_t *size) {
  for (Memory *m = memories; m; m = m->next)
    if (m->device == device && n-- == 0) return *start = m->start, *size = m->size, 1;
  return 0;
}
