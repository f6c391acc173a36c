#if defined(__x86_64__)

typedef int main_fn(int, char **, char **);
typedef void init_fn(int, char **, char **);

/* As glibc up to 2.33 declares it. init, if it is not NULL, runs the constructors; later versions do so themselves where it is NULL. */
extern int gm_libc_start(main_fn *, int, char **, init_fn *init, void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
__asm__(".symver gm_libc_start,__libc_start_main@GLIBC_2.2.5");

extern init_fn *__init_array_start[], *__init_array_end[];
extern void _init(void);

static void run_constructors(int argc, char **argv, char **envp)
{
	_init();
	for (init_fn **constructor = __init_array_start; constructor < __init_array_end; constructor++)
		(*constructor)(argc, argv, envp);
}

/* The code that starts the program calls this if make links it: --wrap in the Makefile. */
int __wrap___libc_start_main(main_fn *main, int argc, char **argv, init_fn *init, void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	return gm_libc_start(main, argc, argv, init ? init : run_constructors, fini, rtld_fini, stack_end);
}

#endif
