// Vector table, start, faults, semihosting. No C runtime start files are used.
#include <stddef.h>
#include <stdint.h>

extern uint32_t __stack_top, __bss_start, __bss_end;
extern void (*__init_array_start[])(void), (*__init_array_end[])(void);
int main(void);

int semihost(int op, const void *arg) {
  register int r0 __asm__("r0") = op;
  register const void *r1 __asm__("r1") = arg;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
void sh_puts(const char *s) { semihost(0x04, s); }
void sh_exit(int code) {
  // SYS_EXIT_EXTENDED: ADP_Stopped_ApplicationExit and the code.
  const uint32_t block[2] = {0x20026, (uint32_t)code};
  semihost(0x20, block);
  for (;;) {}
}

static void hex(const char *name, uint32_t v) {
  char b[10];
  for (int i = 0; i < 8; i++) b[i] = "0123456789abcdef"[(v >> (28 - 4 * i)) & 15];
  b[8] = '\n'; b[9] = 0;
  sh_puts(name); sh_puts(b);
}
void fault_c(const uint32_t *frame) {
  sh_puts("FAULT\n");
  hex("FAULT_PC ", frame[6]);
  hex("FAULT_LR ", frame[5]);
  hex("FAULT_CFSR ", *(volatile uint32_t *)0xE000ED28);
  hex("FAULT_BFAR ", *(volatile uint32_t *)0xE000ED38);
  sh_exit(70);
}
__attribute__((naked)) void Fault_Handler(void) {
  __asm__ volatile("tst lr, #4\n ite eq\n mrseq r0, msp\n mrsne r0, psp\n b fault_c");
}
__attribute__((naked)) void Reset_Handler(void) {
  __asm__ volatile("ldr r0, =__stack_top\n mov sp, r0\n b start_c");
}
void start_c(void) {
  *(volatile uint32_t *)0xE000ED88 |= 0xfu << 20;  // CPACR: coprocessors 10 and 11, that is the FPU (and MVE)
  __asm__ volatile("dsb\n isb");
  for (uint32_t *p = &__bss_start; p < &__bss_end; p++) *p = 0;
  for (void (**f)(void) = __init_array_start; f < __init_array_end; f++) (*f)();
  sh_exit(main());
}
__attribute__((section(".vectors"), used)) const void *const vectors[16] = {
    &__stack_top, (void *)Reset_Handler, (void *)Fault_Handler, (void *)Fault_Handler, (void *)Fault_Handler,
    (void *)Fault_Handler, (void *)Fault_Handler, (void *)Fault_Handler, 0, 0, 0, (void *)Fault_Handler,
    (void *)Fault_Handler, 0, (void *)Fault_Handler, (void *)Fault_Handler};

void *__dso_handle;  // at-exit destructors are registered for it, and never run

// newlib's few needs.
extern char end;
static char *brk_now = &end;
void *_sbrk(ptrdiff_t n) {
  char *p = brk_now;
  if (p + n > (char *)&__stack_top - 0x100000) return (void *)-1;  // 1 MB for the stack
  brk_now += n;
  return p;
}
int _write(int fd, const char *b, int n) { (void)fd; (void)b; return n; }
int _read(int fd, char *b, int n) { (void)fd; (void)b; (void)n; return 0; }
int _close(int fd) { (void)fd; return -1; }
int _lseek(int fd, int o, int w) { (void)fd; (void)o; (void)w; return 0; }
int _fstat(int fd, void *s) { (void)fd; (void)s; return -1; }
int _isatty(int fd) { (void)fd; return 1; }
int _getpid(void) { return 1; }
int _kill(int p, int s) { (void)p; (void)s; return -1; }
void _exit(int c) { sh_puts("EXIT called\n"); sh_exit(c ? c : 71); }
