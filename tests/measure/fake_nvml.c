/* A driver's library whose GPUs do what the environment says: built as libnvidia-ml.so.1 by test_nvml.py.

   FAKE_GPUS     "UUID=NAME;UUID=NAME": in the order of the bus; without it there is one.
   FAKE_MIG      index of the GPU that is cut into slices.
   FAKE_FAIL     "FUNCTION=CODE" or "FUNCTION=CODE@T", separated by spaces: what it answers, from second T on.
   FAKE_WAVE     "PERIOD DUTY SAMPLE": seconds of a square wave, its busy share, and seconds of the sample
                 period, whose share of busy time is the utilisation until the next sample is full.
   FAKE_LOAD     "T SAMPLE", instead of a wave: busy until second T and idle from then on.
   FAKE_BUFFER   "CAPACITY SPACING": how many samples are kept, and how many seconds they are apart.
   FAKE_LATE     "SECONDS": how long after its end a sample reaches the buffer.
   FAKE_HOLE     "FROM TO": seconds between which no sample is taken.
   FAKE_STAMPS   "inclusive": gives the last sample again; "boot": stamps count from the start of the machine.
   FAKE_POWER    "WATTS T AFTER": from second T on the counter runs with AFTER watts, which may be below 0.

   Times are in seconds since 1970. Structures are NVML's, as in https://docs.nvidia.com/deploy/nvml-api/. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
enum { UNSIGNED_INT = 1, GPU_UTILIZATION_SAMPLES = 1, MOST_GPUS = 8 };

typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned long long stamp; union { double real; unsigned whole; } value; } Sample;
typedef struct { char uuid[96], name[96]; } Gpu;

static int references;

int fake_references(void) { return references; }

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  return at.tv_sec + at.tv_nsec * 1e-9;
}

static const char *setting(const char *name, const char *otherwise) {
  const char *set = getenv(name);
  return set ? set : otherwise;
}

static int gpus(Gpu *found) {
  const char *at = setting("FAKE_GPUS", "GPU-11111111-aaaa=NVIDIA H200");
  int count = 0, length;
  while (count < MOST_GPUS && sscanf(at, "%95[^=]=%95[^;]%n", found[count].uuid, found[count].name, &length) == 2) {
    count++;
    at += length;
    if (*at == ';') at++;
  }
  return count;
}

/* What FUNCTION answers by itself: not initialised, or what FAKE_FAIL says. */
static int refusal(const char *function) {
  if (!references) return UNINITIALIZED;
  for (const char *at = setting("FAKE_FAIL", ""); *at;) {
    char name[80] = "";
    int code = 0, length = 0;
    double since = 0;
    if (sscanf(at, " %79[^=]=%d%n", name, &code, &length) < 2) break;
    at += length;
    if (*at == '@') since = strtod(at + 1, (char **)&at);
    if (!strcmp(name, function) && now() >= since) return code;
  }
  return SUCCESS;
}

#define REFUSE(function) do { int code = refusal(function); if (code) return code; } while (0)

/* Seconds that the wave was busy by AT. */
static double busy_by(double at, double period, double duty) {
  double whole = floor(at / period);
  return whole * period * duty + fmin(at - whole * period, period * duty);
}

/* Percent of the sample that was full last at AT. */
static unsigned percent(double at) {
  double period, duty, sample, until, busy;
  if (sscanf(setting("FAKE_LOAD", ""), "%lf %lf", &until, &sample) == 2) {
    double end = floor(at / sample + 1e-6) * sample;
    busy = fmin(sample, fmax(0, until - (end - sample)));
  } else {
    if (sscanf(setting("FAKE_WAVE", "1 1 0.1"), "%lf %lf %lf", &period, &duty, &sample) != 3) return 12345;
    double end = floor(at / sample + 1e-6) * sample;
    busy = busy_by(end, period, duty) - busy_by(end - sample, period, duty);
  }
  return lround(100 * busy / sample);
}

int nvmlInitWithFlags(unsigned flags) {
  references++;
  int code = refusal("nvmlInit");
  if (code) references--;
  return code;
}

int nvmlShutdown(void) {
  REFUSE("nvmlShutdown");
  references--;
  return SUCCESS;
}

const char *nvmlErrorString(int code) { return code == SUCCESS ? "The operation was successful" : "Fake Error"; }

int nvmlDeviceGetCount_v2(unsigned *count) {
  Gpu all[MOST_GPUS];
  REFUSE("nvmlDeviceGetCount");
  *count = gpus(all);
  return SUCCESS;
}

/* A handle is the index of its GPU and one more, so that none is a null pointer. */
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  Gpu all[MOST_GPUS];
  REFUSE("nvmlDeviceGetHandleByIndex");
  if (index >= (unsigned)gpus(all)) return INVALID_ARGUMENT;
  *handle = (void *)(size_t)(index + 1);
  return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
  Gpu all[MOST_GPUS];
  REFUSE("nvmlDeviceGetHandleByUUID");
  for (int index = 0, count = gpus(all); index < count; index++)
    if (!strcmp(all[index].uuid, uuid)) return nvmlDeviceGetHandleByIndex_v2(index, handle);
  return NOT_FOUND;
}

int nvmlDeviceGetUUID(void *handle, char *text, unsigned size) {
  Gpu all[MOST_GPUS];
  REFUSE("nvmlDeviceGetUUID");
  gpus(all);
  snprintf(text, size, "%s", all[(size_t)handle - 1].uuid);
  return SUCCESS;
}

int nvmlDeviceGetName(void *handle, char *text, unsigned size) {
  Gpu all[MOST_GPUS];
  REFUSE("nvmlDeviceGetName");
  gpus(all);
  snprintf(text, size, "%s", all[(size_t)handle - 1].name);
  return SUCCESS;
}

int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
  const char *sliced = getenv("FAKE_MIG");
  REFUSE("nvmlDeviceGetMigMode");
  if (!sliced) return NOT_SUPPORTED;
  *current = *pending = (size_t)handle == (size_t)atoi(sliced) + 1;
  return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *handle, Utilization *rates) {
  REFUSE("nvmlDeviceGetUtilizationRates");
  rates->gpu = percent(now());
  rates->memory = 0;
  return SUCCESS;
}

/* Without room it tells how many there are; stamps are those of whole spacings since 1970. */
int nvmlDeviceGetSamples(void *handle, int kind, unsigned long long seen, int *type, unsigned *count, Sample *samples) {
  int capacity = 0, inclusive = !strcmp(setting("FAKE_STAMPS", ""), "inclusive");
  int boot = !strcmp(setting("FAKE_STAMPS", ""), "boot");
  double spacing = 1, from = 0, to = 0, late = atof(setting("FAKE_LATE", "0"));
  unsigned found = 0;
  REFUSE("nvmlDeviceGetSamples");
  if (kind != GPU_UTILIZATION_SAMPLES) return INVALID_ARGUMENT;
  sscanf(setting("FAKE_BUFFER", "0 1"), "%d %lf", &capacity, &spacing);
  sscanf(setting("FAKE_HOLE", "0 0"), "%lf %lf", &from, &to);
  for (long long last = floor((now() - late) / spacing), step = last - capacity + 1; step <= last; step++) {
    double at = step * spacing, stamped = boot ? at - 1.7e9 : at;
    unsigned long long stamp = llround(stamped * 1e6);
    if ((at >= from && at < to) || (inclusive ? stamp < seen : stamp <= seen)) continue;
    if (samples && found == *count) break;
    if (samples) samples[found] = (Sample){stamp, {.whole = percent(at)}};
    found++;
  }
  *type = UNSIGNED_INT;
  *count = found;
  return found ? SUCCESS : NOT_FOUND;
}

/* Moves in steps of a tenth of a second. */
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules) {
  double watts = 300, since = 1e18, after = 0, at = floor(now() * 10) / 10;
  REFUSE("nvmlDeviceGetTotalEnergyConsumption");
  sscanf(setting("FAKE_POWER", ""), "%lf %lf %lf", &watts, &since, &after);
  double joules = 1e6 + watts * fmod(fmin(at, since), 1e5) + after * fmax(0, at - since);
  *millijoules = llround(joules * 1e3);
  return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) {
  double watts = 300, since = 1e18, after = 0;
  REFUSE("nvmlDeviceGetPowerUsage");
  sscanf(setting("FAKE_POWER", ""), "%lf %lf %lf", &watts, &since, &after);
  *milliwatts = lround(1e3 * (now() < since ? watts : fmax(0, after)));
  return SUCCESS;
}
