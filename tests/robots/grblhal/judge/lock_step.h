/* Lock step for a grblHAL that is built as a PC program: time advances only when bytes arrive.

   Compile every file of the simulator with it: -DCMAKE_C_FLAGS="-DN_AXIS=6 -include .../lock_step.h"

   The program has two threads, the firmware and its hardware, which run as fast as they can. With
   this header it has one: whenever the firmware yields, a slice of the hardware's time passes. A
   byte that acts (a line end, a real-time byte) is worth TICKS_OF_ACTION, RESET TICKS_OF_RESET
   (the start of the firmware would lose a byte that came earlier), TIME_PASSES (a byte without
   a meaning) TICKS_OF_PASSING, FULL_REPORT the time until the report is sent, any other byte
   TICKS_OF_TEXT, and a line that is sent TICKS_OF_ANSWER.
   When this time is used up, the program waits for the next byte, so a session has the same answers
   on a busy machine. */
#if defined(F_CPU) && !defined(LOCK_STEP_H) /* CMake tries the compiler without F_CPU */
#define LOCK_STEP_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TICKS_OF_SLICE (F_CPU / 2000)
#define TICKS_OF_TEXT (F_CPU / 2000)
#define TICKS_OF_ANSWER (F_CPU / 40)
#define TICKS_OF_ACTION (F_CPU / 50)
#define TICKS_OF_RESET F_CPU
#define TICKS_FOR_REPORT F_CPU
#define TICKS_OF_PASSING (F_CPU * 6)
#define TICKS_OF_BYTE (F_CPU / 11520)
#define TICKS_OF_IDLE_BYTE (F_CPU / 500)
#define RESET 0x18
#define FULL_REPORT 0x87
#define TIME_PASSES 0xBF
#define KEYBOARD 0

ssize_t read (int fd, void *into, size_t size); /* a file of the firmware has an unlink of its own: */
ssize_t write (int fd, const void *from, size_t size); /* unistd.h cannot be included */
void simulate_hardware (bool do_serial);
uint32_t mcu_ticks_to_event (uint32_t most);
void mcu_skip_ticks (uint32_t ticks);

/* Every file that includes this defines these; the linker keeps one of each. */
__attribute__((weak)) int64_t lock_step_granted;
__attribute__((weak)) bool lock_step_connected;

__attribute__((weak)) ssize_t lock_step_read (int fd, void *into, size_t size)
{
    if(fd == KEYBOARD || size != 1)
        return read(fd, into, size);
    lock_step_connected = true;
    if(lock_step_granted > 0) {
        errno = EAGAIN;
        return -1;
    }
    struct pollfd waiting = { .fd = fd, .events = POLLIN };
    poll(&waiting, 1, -1);
    ssize_t got = read(fd, into, size);
    if(got == 1) {
        uint8_t byte = *(uint8_t *)into;
        bool acts = byte < ' ' || byte >= 0x80 || byte == '?' || byte == '!' || byte == '~';
        lock_step_granted = byte == TIME_PASSES ? TICKS_OF_PASSING
                            : byte == RESET     ? TICKS_OF_RESET
                            : byte == FULL_REPORT ? TICKS_FOR_REPORT
                            : acts              ? TICKS_OF_ACTION
                                                : TICKS_OF_TEXT;
    }
    return got;
}

__attribute__((weak)) ssize_t lock_step_write (int fd, const void *from, size_t size)
{
    bool report = *(const char *)from == '<';
    if(lock_step_connected && (report || lock_step_granted < TICKS_OF_ANSWER))
        lock_step_granted = TICKS_OF_ANSWER;
    return write(fd, from, size);
}

/* A slice of the hardware's time, within the firmware's own thread. */
__attribute__((weak)) int lock_step_yield (void)
{
    static uint32_t until_byte = TICKS_OF_BYTE;

    for(uint32_t left = TICKS_OF_SLICE; left > 0;) {
        uint32_t most = left < until_byte ? left : until_byte;
        uint32_t skipped = most > 1 ? mcu_ticks_to_event(most - 1) : 0;
        if(skipped)
            mcu_skip_ticks(skipped);
        until_byte -= skipped + 1;
        left -= skipped + 1;
        bool serial = until_byte == 0;
        if(serial)
            until_byte = lock_step_granted > TICKS_OF_RESET ? TICKS_OF_IDLE_BYTE : TICKS_OF_BYTE;
        simulate_hardware(serial);
    }
    if(lock_step_granted > 0)
        lock_step_granted -= TICKS_OF_SLICE;
    return 0;
}

/* The firmware runs in the thread that wanted to start it, and never returns. */
__attribute__((weak)) int lock_step_start (pthread_t *thread, const pthread_attr_t *attributes,
                                           void *(*run) (void *), void *argument)
{
    run(argument);
    return 0;
}

#define read lock_step_read
#define write lock_step_write
#define sched_yield lock_step_yield
#define pthread_create lock_step_start

#endif
