/* Included by make before all C code of the tools and libraries: it binds the functions that glibc has given newer versions to their oldest
 * ones on x86-64, so that what is built on a new system loads on an old one. Only the versions differ: up to glibc 2.33 these functions were in
 * libpthread.so.0 and libdl.so.2, from 2.34 on they are in libc.so.6 (NEWS of glibc 2.34), which still serves the old versions. What is linked
 * names the two libraries as well; they are empty since then. */
#if defined(__x86_64__) && defined(__linux__) && !defined(__ASSEMBLER__)
#define GM_OLDEST(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
GM_OLDEST(dladdr);
GM_OLDEST(dlclose);
GM_OLDEST(dlerror);
GM_OLDEST(dlopen);
#ifndef GM_OWN_DLSYM /* the library defines its own */
GM_OLDEST(dlsym);
#endif
GM_OLDEST(dlvsym);
GM_OLDEST(pthread_attr_getstack);
GM_OLDEST(pthread_attr_getstacksize);
GM_OLDEST(pthread_create);
GM_OLDEST(pthread_getattr_np);
GM_OLDEST(pthread_getspecific);
GM_OLDEST(pthread_key_create);
GM_OLDEST(pthread_mutexattr_destroy);
GM_OLDEST(pthread_mutexattr_init);
GM_OLDEST(pthread_mutexattr_settype);
GM_OLDEST(pthread_once);
GM_OLDEST(pthread_rwlock_rdlock);
GM_OLDEST(pthread_rwlock_unlock);
GM_OLDEST(pthread_rwlock_wrlock);
GM_OLDEST(pthread_setspecific);
GM_OLDEST(pthread_sigmask);
#undef GM_OLDEST
#endif
