/* The functions of the CUDA driver that use memory of a device from a thread of the program: GATED(name, parameters, arguments...). Left out
 * are those for which memory of cudaMalloc and of PyTorch cannot be: arrays alone, managed memory, and cuLaunchGrid, which CUDA 13 has no more.
 * FILLS(name, parameters, device, bytes, arguments...) are those that take memory of a device without the program's allocator: some bytes
 * and what CUDA keeps there by itself. PLAIN ones have a wrapper of their own. */
#ifndef GATED
#define GATED(name, parameters, ...) HOOK(name, parameters)
#endif
#ifndef FILLS
#define FILLS(name, parameters, device, bytes, ...) HOOK(name, parameters)
#endif
#ifndef PLAIN
#define PLAIN(name, parameters) HOOK(name, parameters)
#endif

PLAIN(cuGetProcAddress, (const char *name, void **fn, int version, uint64_t flags))
PLAIN(cuGetProcAddress_v2, (const char *name, void **fn, int version, uint64_t flags, int *status))

/* Contexts. */
FILLS(cuDevicePrimaryCtxRetain, (void **context, int device), device, 0, context, device)
FILLS(cuCtxCreate_v2, (void **context, unsigned flags, int device), device, 0, context, flags, device)
FILLS(cuCtxCreate_v3, (void **context, void *affinity, int count, unsigned flags, int device), device, 0, context, affinity, count, flags, device)
FILLS(cuCtxCreate_v4, (void **context, void *params, unsigned flags, int device), device, 0, context, params, flags, device)
FILLS(cuCtxSetLimit, (int limit, size_t value), current_device(), 0, limit, value)

/* Code. With lazy loading most of it is loaded when its first kernel is looked up or launched. */
#define OPTIONS void *jit, void **jit_values, unsigned njit, void *options, void **values, unsigned n
FILLS(cuModuleLoad, (void **module, const char *path), current_device(), 0, module, path)
FILLS(cuModuleLoadData, (void **module, const void *image), current_device(), 0, module, image)
FILLS(cuModuleLoadDataEx, (void **module, const void *image, unsigned n, int *options, void **values),
      current_device(), 0, module, image, n, options, values)
FILLS(cuModuleLoadFatBinary, (void **module, const void *image), current_device(), 0, module, image)
FILLS(cuModuleGetFunction, (void **f, void *module, const char *name), current_device(), 0, f, module, name)
FILLS(cuModuleGetGlobal_v2, (uint64_t *p, size_t *size, void *module, const char *name), current_device(), 0, p, size, module, name)
FILLS(cuLibraryLoadData, (void **library, const void *code, OPTIONS),
      current_device(), 0, library, code, jit, jit_values, njit, options, values, n)
FILLS(cuLibraryLoadFromFile, (void **library, const char *path, OPTIONS),
      current_device(), 0, library, path, jit, jit_values, njit, options, values, n)
FILLS(cuLibraryGetModule, (void **module, void *library), current_device(), 0, module, library)
FILLS(cuLibraryGetKernel, (void **kernel, void *library, const char *name), current_device(), 0, kernel, library, name)
FILLS(cuLibraryGetGlobal, (uint64_t *p, size_t *size, void *library, const char *name), current_device(), 0, p, size, library, name)
FILLS(cuKernelGetFunction, (void **f, void *kernel), current_device(), 0, f, kernel)
FILLS(cuKernelGetAttribute, (int *value, int attribute, void *kernel, int device), device, 0, value, attribute, kernel, device)
FILLS(cuKernelSetAttribute, (int attribute, int value, void *kernel, int device), device, 0, attribute, value, kernel, device)
FILLS(cuFuncGetAttribute, (int *value, int attribute, void *f), current_device(), 0, value, attribute, f)
FILLS(cuFuncSetAttribute, (void *f, int attribute, int value), current_device(), 0, f, attribute, value)
FILLS(cuFuncLoad, (void *f), current_device(), 0, f)
FILLS(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, void *f, int block, size_t shared), current_device(), 0, blocks, f, block, shared)
FILLS(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, (int *blocks, void *f, int block, size_t shared, unsigned flags),
      current_device(), 0, blocks, f, block, shared, flags)

/* Streams, graphs, and memory that libraries take without the program's allocator. */
FILLS(cuStreamCreate, (void **stream, unsigned flags), current_device(), 0, stream, flags)
FILLS(cuStreamCreateWithPriority, (void **stream, unsigned flags, int priority), current_device(), 0, stream, flags, priority)
FILLS(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags), current_device(), 0, exec, graph, flags)
FILLS(cuGraphInstantiateWithParams, (void **exec, void *graph, void *params), current_device(), 0, exec, graph, params)
FILLS(cuMemAlloc_v2, (uint64_t *p, size_t size), current_device(), size, p, size)
FILLS(cuMemAllocPitch_v2, (uint64_t *p, size_t *pitch, size_t width, size_t height, unsigned element),
      current_device(), width * height, p, pitch, width, height, element)
FILLS(cuMemAllocAsync, (uint64_t *p, size_t size, void *stream), current_device(), size, p, size, stream)
FILLS(cuMemAllocAsync_ptsz, (uint64_t *p, size_t size, void *stream), current_device(), size, p, size, stream)
FILLS(cuMemAllocFromPoolAsync, (uint64_t *p, size_t size, void *pool, void *stream), current_device(), size, p, size, pool, stream)
FILLS(cuMemAllocFromPoolAsync_ptsz, (uint64_t *p, size_t size, void *pool, void *stream), current_device(), size, p, size, pool, stream)

/* Captures. */
PLAIN(cuStreamBeginCapture, (void *stream))
PLAIN(cuStreamBeginCapture_ptsz, (void *stream))
PLAIN(cuStreamBeginCapture_v2, (void *stream, int mode))
PLAIN(cuStreamBeginCapture_v2_ptsz, (void *stream, int mode))
PLAIN(cuStreamBeginCaptureToGraph, (void *stream, void *graph, const void *after, const void *edges, size_t n, int mode))
PLAIN(cuStreamBeginCaptureToGraph_ptsz, (void *stream, void *graph, const void *after, const void *edges, size_t n, int mode))
PLAIN(cuStreamEndCapture, (void *stream, void **graph))
PLAIN(cuStreamEndCapture_ptsz, (void *stream, void **graph))

/* What passes memory on to others, who go on using the physical memory that is there now. */
PLAIN(cuMemRetainAllocationHandle, (uint64_t *handle, void *address))
PLAIN(cuMemGetHandleForAddressRange, (void *handle, uint64_t p, size_t size, int type, unsigned long long flags))
PLAIN(cuIpcGetMemHandle, (void *handle, uint64_t p))
PLAIN(cuMulticastBindAddr, (uint64_t multicast, size_t offset, uint64_t p, size_t size, unsigned long long flags))
PLAIN(cuPointerSetAttribute, (const void *value, int attribute, uint64_t p))

/* Launches. */
#define SHAPE unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream
GATED(cuLaunchKernel, (void *f, SHAPE, void **parameters, void **extra), f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
GATED(cuLaunchKernel_ptsz, (void *f, SHAPE, void **parameters, void **extra), f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
GATED(cuLaunchKernelEx, (const void *config, void *f, void **parameters, void **extra), config, f, parameters, extra)
GATED(cuLaunchKernelEx_ptsz, (const void *config, void *f, void **parameters, void **extra), config, f, parameters, extra)
GATED(cuLaunchCooperativeKernel, (void *f, SHAPE, void **parameters), f, gx, gy, gz, bx, by, bz, shared, stream, parameters)
GATED(cuLaunchCooperativeKernel_ptsz, (void *f, SHAPE, void **parameters), f, gx, gy, gz, bx, by, bz, shared, stream, parameters)
GATED(cuLaunchCooperativeKernelMultiDevice, (void *list, unsigned n, unsigned flags), list, n, flags)
GATED(cuGraphLaunch, (void *graph, void *stream), graph, stream)
GATED(cuGraphLaunch_ptsz, (void *graph, void *stream), graph, stream)

/* Copies. */
GATED(cuMemcpy, (uint64_t dst, uint64_t src, size_t n), dst, src, n)
GATED(cuMemcpy_ptds, (uint64_t dst, uint64_t src, size_t n), dst, src, n)
GATED(cuMemcpyAsync, (uint64_t dst, uint64_t src, size_t n, void *stream), dst, src, n, stream)
GATED(cuMemcpyAsync_ptsz, (uint64_t dst, uint64_t src, size_t n, void *stream), dst, src, n, stream)
GATED(cuMemcpyPeer, (uint64_t dst, void *to, uint64_t src, void *from, size_t n), dst, to, src, from, n)
GATED(cuMemcpyPeer_ptds, (uint64_t dst, void *to, uint64_t src, void *from, size_t n), dst, to, src, from, n)
GATED(cuMemcpyPeerAsync, (uint64_t dst, void *to, uint64_t src, void *from, size_t n, void *stream), dst, to, src, from, n, stream)
GATED(cuMemcpyPeerAsync_ptsz, (uint64_t dst, void *to, uint64_t src, void *from, size_t n, void *stream), dst, to, src, from, n, stream)
GATED(cuMemcpyHtoD_v2, (uint64_t dst, const void *src, size_t n), dst, src, n)
GATED(cuMemcpyHtoD_v2_ptds, (uint64_t dst, const void *src, size_t n), dst, src, n)
GATED(cuMemcpyDtoH_v2, (void *dst, uint64_t src, size_t n), dst, src, n)
GATED(cuMemcpyDtoH_v2_ptds, (void *dst, uint64_t src, size_t n), dst, src, n)
GATED(cuMemcpyDtoD_v2, (uint64_t dst, uint64_t src, size_t n), dst, src, n)
GATED(cuMemcpyDtoD_v2_ptds, (uint64_t dst, uint64_t src, size_t n), dst, src, n)
GATED(cuMemcpyHtoDAsync_v2, (uint64_t dst, const void *src, size_t n, void *stream), dst, src, n, stream)
GATED(cuMemcpyHtoDAsync_v2_ptsz, (uint64_t dst, const void *src, size_t n, void *stream), dst, src, n, stream)
GATED(cuMemcpyDtoHAsync_v2, (void *dst, uint64_t src, size_t n, void *stream), dst, src, n, stream)
GATED(cuMemcpyDtoHAsync_v2_ptsz, (void *dst, uint64_t src, size_t n, void *stream), dst, src, n, stream)
GATED(cuMemcpyDtoDAsync_v2, (uint64_t dst, uint64_t src, size_t n, void *stream), dst, src, n, stream)
GATED(cuMemcpyDtoDAsync_v2_ptsz, (uint64_t dst, uint64_t src, size_t n, void *stream), dst, src, n, stream)
GATED(cuMemcpyDtoA_v2, (void *dst, size_t at, uint64_t src, size_t n), dst, at, src, n)
GATED(cuMemcpyDtoA_v2_ptds, (void *dst, size_t at, uint64_t src, size_t n), dst, at, src, n)
GATED(cuMemcpyAtoD_v2, (uint64_t dst, void *src, size_t at, size_t n), dst, src, at, n)
GATED(cuMemcpyAtoD_v2_ptds, (uint64_t dst, void *src, size_t at, size_t n), dst, src, at, n)
GATED(cuMemcpy2D_v2, (const void *copy), copy)
GATED(cuMemcpy2D_v2_ptds, (const void *copy), copy)
GATED(cuMemcpy2DUnaligned_v2, (const void *copy), copy)
GATED(cuMemcpy2DUnaligned_v2_ptds, (const void *copy), copy)
GATED(cuMemcpy2DAsync_v2, (const void *copy, void *stream), copy, stream)
GATED(cuMemcpy2DAsync_v2_ptsz, (const void *copy, void *stream), copy, stream)
GATED(cuMemcpy3D_v2, (const void *copy), copy)
GATED(cuMemcpy3D_v2_ptds, (const void *copy), copy)
GATED(cuMemcpy3DAsync_v2, (const void *copy, void *stream), copy, stream)
GATED(cuMemcpy3DAsync_v2_ptsz, (const void *copy, void *stream), copy, stream)
GATED(cuMemcpy3DPeer, (const void *copy), copy)
GATED(cuMemcpy3DPeer_ptds, (const void *copy), copy)
GATED(cuMemcpy3DPeerAsync, (const void *copy, void *stream), copy, stream)
GATED(cuMemcpy3DPeerAsync_ptsz, (const void *copy, void *stream), copy, stream)
#define BATCH void *dsts, void *srcs, void *sizes, size_t count, void *attributes, void *which, size_t n
GATED(cuMemcpyBatchAsync, (BATCH, size_t *failed, void *stream), dsts, srcs, sizes, count, attributes, which, n, failed, stream)
GATED(cuMemcpyBatchAsync_ptsz, (BATCH, size_t *failed, void *stream), dsts, srcs, sizes, count, attributes, which, n, failed, stream)
GATED(cuMemcpyBatchAsync_v2, (BATCH, void *stream), dsts, srcs, sizes, count, attributes, which, n, stream)
GATED(cuMemcpyBatchAsync_v2_ptsz, (BATCH, void *stream), dsts, srcs, sizes, count, attributes, which, n, stream)
GATED(cuMemcpy3DBatchAsync, (size_t n, void *copies, size_t *failed, unsigned long long flags, void *stream), n, copies, failed, flags, stream)
GATED(cuMemcpy3DBatchAsync_ptsz, (size_t n, void *copies, size_t *failed, unsigned long long flags, void *stream), n, copies, failed, flags, stream)
GATED(cuMemcpy3DBatchAsync_v2, (size_t n, void *copies, unsigned long long flags, void *stream), n, copies, flags, stream)
GATED(cuMemcpy3DBatchAsync_v2_ptsz, (size_t n, void *copies, unsigned long long flags, void *stream), n, copies, flags, stream)

/* Fills. */
GATED(cuMemsetD8_v2, (uint64_t p, unsigned char value, size_t n), p, value, n)
GATED(cuMemsetD8_v2_ptds, (uint64_t p, unsigned char value, size_t n), p, value, n)
GATED(cuMemsetD16_v2, (uint64_t p, unsigned short value, size_t n), p, value, n)
GATED(cuMemsetD16_v2_ptds, (uint64_t p, unsigned short value, size_t n), p, value, n)
GATED(cuMemsetD32_v2, (uint64_t p, unsigned value, size_t n), p, value, n)
GATED(cuMemsetD32_v2_ptds, (uint64_t p, unsigned value, size_t n), p, value, n)
GATED(cuMemsetD8Async, (uint64_t p, unsigned char value, size_t n, void *stream), p, value, n, stream)
GATED(cuMemsetD8Async_ptsz, (uint64_t p, unsigned char value, size_t n, void *stream), p, value, n, stream)
GATED(cuMemsetD16Async, (uint64_t p, unsigned short value, size_t n, void *stream), p, value, n, stream)
GATED(cuMemsetD16Async_ptsz, (uint64_t p, unsigned short value, size_t n, void *stream), p, value, n, stream)
GATED(cuMemsetD32Async, (uint64_t p, unsigned value, size_t n, void *stream), p, value, n, stream)
GATED(cuMemsetD32Async_ptsz, (uint64_t p, unsigned value, size_t n, void *stream), p, value, n, stream)
GATED(cuMemsetD2D8_v2, (uint64_t p, size_t pitch, unsigned char value, size_t n, size_t rows), p, pitch, value, n, rows)
GATED(cuMemsetD2D8_v2_ptds, (uint64_t p, size_t pitch, unsigned char value, size_t n, size_t rows), p, pitch, value, n, rows)
GATED(cuMemsetD2D16_v2, (uint64_t p, size_t pitch, unsigned short value, size_t n, size_t rows), p, pitch, value, n, rows)
GATED(cuMemsetD2D16_v2_ptds, (uint64_t p, size_t pitch, unsigned short value, size_t n, size_t rows), p, pitch, value, n, rows)
GATED(cuMemsetD2D32_v2, (uint64_t p, size_t pitch, unsigned value, size_t n, size_t rows), p, pitch, value, n, rows)
GATED(cuMemsetD2D32_v2_ptds, (uint64_t p, size_t pitch, unsigned value, size_t n, size_t rows), p, pitch, value, n, rows)
GATED(cuMemsetD2D8Async, (uint64_t p, size_t pitch, unsigned char value, size_t n, size_t rows, void *stream), p, pitch, value, n, rows, stream)
GATED(cuMemsetD2D8Async_ptsz, (uint64_t p, size_t pitch, unsigned char value, size_t n, size_t rows, void *stream), p, pitch, value, n, rows, stream)
GATED(cuMemsetD2D16Async, (uint64_t p, size_t pitch, unsigned short value, size_t n, size_t rows, void *stream), p, pitch, value, n, rows, stream)
GATED(cuMemsetD2D16Async_ptsz, (uint64_t p, size_t pitch, unsigned short value, size_t n, size_t rows, void *stream), p, pitch, value, n, rows, stream)
GATED(cuMemsetD2D32Async, (uint64_t p, size_t pitch, unsigned value, size_t n, size_t rows, void *stream), p, pitch, value, n, rows, stream)
GATED(cuMemsetD2D32Async_ptsz, (uint64_t p, size_t pitch, unsigned value, size_t n, size_t rows, void *stream), p, pitch, value, n, rows, stream)

/* Words that streams read and write. */
GATED(cuStreamWaitValue32_v2, (void *stream, uint64_t p, uint32_t value, unsigned flags), stream, p, value, flags)
GATED(cuStreamWaitValue32_v2_ptsz, (void *stream, uint64_t p, uint32_t value, unsigned flags), stream, p, value, flags)
GATED(cuStreamWaitValue64_v2, (void *stream, uint64_t p, uint64_t value, unsigned flags), stream, p, value, flags)
GATED(cuStreamWaitValue64_v2_ptsz, (void *stream, uint64_t p, uint64_t value, unsigned flags), stream, p, value, flags)
GATED(cuStreamWriteValue32_v2, (void *stream, uint64_t p, uint32_t value, unsigned flags), stream, p, value, flags)
GATED(cuStreamWriteValue32_v2_ptsz, (void *stream, uint64_t p, uint32_t value, unsigned flags), stream, p, value, flags)
GATED(cuStreamWriteValue64_v2, (void *stream, uint64_t p, uint64_t value, unsigned flags), stream, p, value, flags)
GATED(cuStreamWriteValue64_v2_ptsz, (void *stream, uint64_t p, uint64_t value, unsigned flags), stream, p, value, flags)
GATED(cuStreamBatchMemOp_v2, (void *stream, unsigned n, void *operations, unsigned flags), stream, n, operations, flags)
GATED(cuStreamBatchMemOp_v2_ptsz, (void *stream, unsigned n, void *operations, unsigned flags), stream, n, operations, flags)

#undef SHAPE
#undef BATCH
#undef OPTIONS
