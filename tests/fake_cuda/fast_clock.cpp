// A clock that runs ten times as fast, to be loaded before libc (`LD_PRELOAD`): for programs that wait for time to pass.
// Waits for other threads with a timeout would go on ten times too long, so none may run out.
#include <cerrno>
#include <cstdint>
#include <dlfcn.h>
#include <time.h>

namespace {
constexpr int64_t TIMES = 10, SECOND = 1'000'000'000;

int64_t nanoseconds(const timespec &time) { return time.tv_sec * SECOND + time.tv_nsec; }
timespec timespec_of(int64_t nanoseconds) { return {nanoseconds / SECOND, nanoseconds % SECOND}; }

int64_t clock_of_libc(clockid_t clock, int *result) {
    static const auto real = reinterpret_cast<int (*)(clockid_t, timespec *)>(dlsym(RTLD_NEXT, "clock_gettime"));
    timespec now{};
    *result = real(clock, &now);
    return nanoseconds(now);
}
} // namespace

extern "C" int clock_gettime(clockid_t clock, timespec *time) {
    static int ignored;
    static const int64_t start = clock_of_libc(CLOCK_MONOTONIC, &ignored);
    int result;
    const int64_t now = clock_of_libc(clock, &result);
    *time = timespec_of(clock == CLOCK_MONOTONIC ? start + TIMES * (now - start) : now);
    return result;
}

extern "C" int clock_nanosleep(clockid_t clock, int flags, const timespec *time, timespec *) {
    // An absolute time would have to be translated; nothing here waits for one.
    if (flags != 0) {
        return ENOTSUP;
    }
    static const auto real =
        reinterpret_cast<int (*)(clockid_t, int, const timespec *, timespec *)>(dlsym(RTLD_NEXT, "clock_nanosleep"));
    const timespec shorter = timespec_of(nanoseconds(*time) / TIMES);
    return real(clock, 0, &shorter, nullptr);
}

extern "C" int nanosleep(const timespec *time, timespec *rest) {
    const int error = clock_nanosleep(CLOCK_REALTIME, 0, time, rest);
    errno = error;
    return error == 0 ? 0 : -1;
}
