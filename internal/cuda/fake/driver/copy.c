/* Copies and fills. A fill does not wait; a synchronous copy waits for its stream. */
#include "races.h"

enum side { DEVICE, HOST, EITHER };

/* side_is_device returns whether an address is on a device. An address that the driver does not know is on the host. */
static bool side_is_device(enum side side, uint64_t address)
{
	return side == DEVICE || (side == EITHER && device_address(address));
}

/* side_in_range: the device of the copying stream must have access to both sides, whether or not they are on it. */
static bool side_in_range(CUstream stream, bool device, uint64_t address, uint64_t size)
{
	return address && (device ? device_range(stream->ctx->device, address, size) : host_range(address, size));
}

static CUresult copy_locked(struct op *op, CUstream handle, bool wait)
{
	CUstream stream;
	CUresult r = stream_find(handle, &stream);
	if (r != CUDA_SUCCESS)
		return r;
	uint64_t size, last;
	if (__builtin_mul_overflow(op->copy.rows, op->copy.size, &size) || __builtin_mul_overflow(op->copy.rows - 1, op->copy.pitch, &last) ||
	    !side_in_range(stream, op->copy.dst_device, op->copy.dst, size) ||
	    !side_in_range(stream, op->copy.src_device, op->copy.src, last + op->copy.size))
		return CUDA_ERROR_INVALID_VALUE;
	if (!wait)
		return queue_op(stream, op);
	r = queue_op_and_wait(stream, op);
	races_sync(stream);
	return r;
}

static CUresult copy_rows(uint64_t dst, enum side to, uint64_t src, enum side from, size_t size, size_t rows, size_t pitch, CUstream stream, bool wait)
{
	if (size == 0 || rows == 0)
		return CUDA_SUCCESS;
	struct op op = {.kind = OP_COPY, .copy = {.dst = dst, .src = src, .size = size, .rows = rows, .pitch = pitch}};
	lock();
	op.copy.dst_device = side_is_device(to, dst);
	op.copy.src_device = side_is_device(from, src);
	CUresult r = copy_locked(&op, stream, wait);
	unlock();
	return r;
}

static CUresult copy(uint64_t dst, enum side to, uint64_t src, enum side from, size_t size, CUstream stream, bool wait)
{
	return copy_rows(dst, to, src, from, size, 1, 0, stream, wait);
}

static CUresult set_locked(const struct op *op, uint64_t size, CUstream handle)
{
	CUstream stream;
	CUresult r = stream_find(handle, &stream);
	if (r != CUDA_SUCCESS)
		return r;
	return device_range(stream->ctx->device, op->set.dst, size) ? queue_op(stream, op) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set(enum op_kind kind, uint64_t p, unsigned value, size_t n, CUstream stream)
{
	if (n == 0)
		return CUDA_SUCCESS;
	uint64_t width = kind == OP_SET32 ? 4 : 1, size;
	if (p % width || __builtin_mul_overflow(n, width, &size))
		return CUDA_ERROR_INVALID_VALUE;
	struct op op = {.kind = kind, .set = {.dst = p, .count = n, .value = value}};
	lock();
	CUresult r = set_locked(&op, size, stream);
	unlock();
	return r;
}

static CUstream per_thread(CUstream stream) { return stream ? stream : CU_STREAM_PER_THREAD; }

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	ENTER(NEED_CONTEXT);
	return copy(dst, EITHER, src, EITHER, size, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	ENTER(NEED_CONTEXT);
	return copy(dst, EITHER, src, EITHER, size, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size)
{
	ENTER(NEED_CONTEXT);
	return copy(dst, DEVICE, (uintptr_t)src, HOST, size, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t size)
{
	ENTER(NEED_CONTEXT);
	return copy(dst, DEVICE, (uintptr_t)src, HOST, size, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size)
{
	ENTER(NEED_CONTEXT);
	return copy((uintptr_t)dst, HOST, src, DEVICE, size, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t size)
{
	ENTER(NEED_CONTEXT);
	return copy((uintptr_t)dst, HOST, src, DEVICE, size, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	ENTER(NEED_CONTEXT);
	return copy(dst, DEVICE, src, DEVICE, size, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	ENTER(NEED_CONTEXT);
	return copy(dst, DEVICE, src, DEVICE, size, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	ENTER(NEED_CONTEXT);
	return copy(dst, EITHER, src, EITHER, size, stream, false);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return cuMemcpyAsync(dst, src, size, per_thread(stream));
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	ENTER(NEED_CONTEXT);
	return copy(dst, DEVICE, (uintptr_t)src, HOST, size, stream, false);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	return cuMemcpyHtoDAsync_v2(dst, src, size, per_thread(stream));
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	ENTER(NEED_CONTEXT);
	return copy((uintptr_t)dst, HOST, src, DEVICE, size, stream, false);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return cuMemcpyDtoHAsync_v2(dst, src, size, per_thread(stream));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	ENTER(NEED_CONTEXT);
	return copy(dst, DEVICE, src, DEVICE, size, stream, false);
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return cuMemcpyDtoDAsync_v2(dst, src, size, per_thread(stream));
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
	ENTER(NEED_CONTEXT);
	if (c->srcMemoryType != CU_MEMORYTYPE_UNIFIED || c->dstMemoryType != CU_MEMORYTYPE_UNIFIED || c->srcXInBytes || c->srcY || c->dstXInBytes || c->dstY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (c->srcPitch < c->WidthInBytes || c->dstPitch != c->WidthInBytes)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_rows(c->dstDevice, EITHER, c->srcDevice, EITHER, c->WidthInBytes, c->Height, c->srcPitch, stream, false);
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *c, CUstream stream)
{
	return cuMemcpy2DAsync_v2(c, per_thread(stream));
}

CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char value, size_t n)
{
	ENTER(NEED_CONTEXT);
	return set(OP_SET8, p, value, n, CU_STREAM_LEGACY);
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr p, unsigned char value, size_t n)
{
	ENTER(NEED_CONTEXT);
	return set(OP_SET8, p, value, n, CU_STREAM_PER_THREAD);
}

CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned value, size_t n)
{
	ENTER(NEED_CONTEXT);
	return set(OP_SET32, p, value, n, CU_STREAM_LEGACY);
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr p, unsigned value, size_t n)
{
	ENTER(NEED_CONTEXT);
	return set(OP_SET32, p, value, n, CU_STREAM_PER_THREAD);
}

CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char value, size_t n, CUstream stream)
{
	ENTER(NEED_CONTEXT);
	return set(OP_SET8, p, value, n, stream);
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr p, unsigned char value, size_t n, CUstream stream)
{
	return cuMemsetD8Async(p, value, n, per_thread(stream));
}

CUresult cuMemsetD32Async(CUdeviceptr p, unsigned value, size_t n, CUstream stream)
{
	ENTER(NEED_CONTEXT);
	return set(OP_SET32, p, value, n, stream);
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr p, unsigned value, size_t n, CUstream stream)
{
	return cuMemsetD32Async(p, value, n, per_thread(stream));
}
