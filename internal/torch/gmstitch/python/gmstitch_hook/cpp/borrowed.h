// Memory of a pool that has an allocator of its own: torch.cuda.MemPool(allocator), such as one of NCCL's.
#pragma once

#include "history.h"
#include "library.h"

#include <atomic>
#include <map>
#include <set>

namespace gm {

// Borrowed is such a pool on one device. It takes segments from the pool's allocator and cuts requests out of them.
class Borrowed {
public:
	struct Piece {
		size_t size, requested;
		cudaStream_t stream;
		char *segment;
		bool used, pending;
		std::set<cudaStream_t> others; // that use it beside its own
		Context context;
	};

	// While capturing is set a CUDA graph may be captured, as while one of the streams is: no event is recorded or queried then.
	Borrowed(DeviceIndex device, PoolID id, std::shared_ptr<CUDAAllocator> source, History &history, const std::atomic<bool> &capturing)
		: device_(device), id_(id), source_(std::move(source)), history_(history), capturing_(capturing)
	{
	}

	void set_whole() { whole_ = true; } // segments are not cut

	void *malloc(size_t size, cudaStream_t stream, Context context)
	{
		std::lock_guard<std::recursive_mutex> lock(mutex_);
		if (!captured(stream))
			settle(false);
		size_t rounded = (size + ROUND - 1) / ROUND * ROUND;
		auto found = fitting(rounded, stream);
		if (found == pieces_.end())
			found = grow(rounded, stream, context);
		if (found == pieces_.end())
			return nullptr;
		if (!whole_)
			cut(found, rounded);
		Piece &piece = found->second;
		piece.used = true;
		piece.requested = size;
		piece.context = std::move(context);
		count(+1, piece);
		return found->first;
	}

	// free returns the bytes that the request had, with rounding.
	size_t free(void *p)
	{
		std::lock_guard<std::recursive_mutex> lock(mutex_);
		auto found = pieces_.find(static_cast<char *>(p));
		TORCH_CHECK(found != pieces_.end() && found->second.used, "invalid device pointer: ", p);
		Piece &piece = found->second;
		size_t size = piece.size;
		count(-1, piece);
		piece.used = false;
		piece.context = nullptr;
		if (piece.others.empty())
			join(found);
		else
			defer(piece, found->first);
		return size;
	}

	bool find(void *p, Block *block)
	{
		std::lock_guard<std::recursive_mutex> lock(mutex_);
		auto found = pieces_.find(static_cast<char *>(p));
		if (found == pieces_.end() || !found->second.used)
			return false;
		*block = view(found->first, found->second);
		return true;
	}

	void record(void *p, cudaStream_t stream)
	{
		std::lock_guard<std::recursive_mutex> lock(mutex_);
		auto found = pieces_.find(static_cast<char *>(p));
		if (found != pieces_.end() && found->second.stream != stream)
			found->second.others.insert(stream);
	}

	// base returns the segment that p lies in.
	void *base(void *p, size_t *size)
	{
		std::lock_guard<std::recursive_mutex> lock(mutex_);
		auto after = segments_.upper_bound(static_cast<char *>(p));
		if (after == segments_.begin())
			return nullptr;
		--after;
		*size = after->second.size;
		return after->first;
	}

	// empty gives back the segments that hold nothing, once other streams are done with them. It returns whether there were any.
	bool empty()
	{
		std::lock_guard<std::recursive_mutex> lock(mutex_);
		if (capturing_)
			return false;
		settle(true);
		size_t before = segments_.size();
		for (auto s = segments_.begin(); s != segments_.end();) {
			auto piece = pieces_.find(s->first);
			if (piece == pieces_.end() || piece->second.used || piece->second.pending || piece->second.size != s->second.size) {
				++s;
				continue;
			}
			history_.note_one(TraceEntry::SEGMENT_FREE, device_, address(s->first), s->second.size, piece->second.stream, id_, nullptr);
			reserve(-1, s->second.size);
			pieces_.erase(piece);
			source_->raw_delete(s->first);
			s = segments_.erase(s);
		}
		return segments_.size() < before;
	}

	bool unused()
	{
		std::lock_guard<std::recursive_mutex> lock(mutex_);
		return segments_.empty();
	}

	void blocks(std::vector<Block> &all)
	{
		std::lock_guard<std::recursive_mutex> lock(mutex_);
		for (auto &[p, piece] : pieces_)
			all.push_back(view(p, piece));
	}

	// number adds the numbers of the segments, by address, in the order in which they were taken.
	void number(std::map<size_t, int> &numbers)
	{
		std::lock_guard<std::recursive_mutex> lock(mutex_);
		for (auto &[p, segment] : segments_)
			numbers[reinterpret_cast<size_t>(p)] = segment.number;
	}

	caching::DeviceStats stats()
	{
		std::lock_guard<std::recursive_mutex> lock(mutex_);
		return stats_;
	}

private:
	static constexpr size_t ROUND = 512, SMALL = 1 << 20, SMALL_SEGMENT = 2 << 20, LARGE_SEGMENT = 20 << 20;
	struct Wait { // of a piece that was freed, for other streams
		char *p;
		std::set<cudaStream_t> streams; // in which an event is still to be recorded
		std::vector<cudaEvent_t> events;
	};
	struct Segment {
		size_t size;
		int number; // in the order in which they were taken
	};
	using Pieces = std::map<char *, Piece>;

	DeviceIndex device_;
	PoolID id_;
	std::shared_ptr<CUDAAllocator> source_;
	History &history_;
	const std::atomic<bool> &capturing_;
	bool whole_ = false;
	std::recursive_mutex mutex_; // the pool's allocator may free and allocate
	Pieces pieces_;
	std::map<char *, Segment> segments_;
	int taken_ = 0; // segments so far
	std::vector<Wait> waits_;
	caching::DeviceStats stats_;

	static size_t address(char *p) { return reinterpret_cast<size_t>(p); }

	// fitting returns the smallest free piece that is large enough.
	Pieces::iterator fitting(size_t size, cudaStream_t stream)
	{
		auto best = pieces_.end();
		for (auto p = pieces_.begin(); p != pieces_.end(); ++p) {
			auto &piece = p->second;
			if (piece.used || piece.pending || piece.stream != stream || piece.size < size)
				continue;
			if (whole_ && piece.size > 2 * size)
				continue;
			if (best == pieces_.end() || piece.size < best->second.size)
				best = p;
		}
		return best;
	}

	Pieces::iterator grow(size_t size, cudaStream_t stream, const Context &context)
	{
		size_t segment = (size + SMALL_SEGMENT - 1) / SMALL_SEGMENT * SMALL_SEGMENT;
		if (!whole_ && size > SMALL)
			segment = std::max(segment, LARGE_SEGMENT);
		On device(device_);
		Relaxed relaxed;
		auto *p = static_cast<char *>(source_->raw_alloc_with_stream(segment, stream));
		if (!p)
			return pieces_.end();
		segments_[p] = Segment{segment, taken_++};
		reserve(+1, segment);
		auto piece = pieces_.emplace(p, Piece{segment, 0, stream, p, false, false, {}, nullptr}).first;
		history_.note_one(TraceEntry::SEGMENT_ALLOC, device_, address(p), segment, stream, id_, context); // a tracker may throw
		return piece;
	}

	void cut(Pieces::iterator p, size_t size)
	{
		size_t rest = p->second.size - size;
		if (rest < ROUND)
			return;
		p->second.size = size;
		pieces_.emplace(p->first + size, Piece{rest, 0, p->second.stream, p->second.segment, false, false, {}, nullptr});
	}

	void join(Pieces::iterator p)
	{
		auto next = std::next(p);
		if (next != pieces_.end() && mergeable(p->second, next->second)) {
			p->second.size += next->second.size;
			pieces_.erase(next);
		}
		if (p == pieces_.begin())
			return;
		auto before = std::prev(p);
		if (mergeable(before->second, p->second)) {
			before->second.size += p->second.size;
			pieces_.erase(p);
		}
	}

	static bool mergeable(const Piece &a, const Piece &b)
	{
		return a.segment == b.segment && !a.used && !b.used && !a.pending && !b.pending;
	}

	// defer has a piece wait for the work of the other streams.
	void defer(Piece &piece, char *p)
	{
		waits_.push_back({p, std::move(piece.others), {}});
		piece.others.clear();
		piece.pending = true;
		if (!captured(piece.stream) && std::none_of(waits_.back().streams.begin(), waits_.back().streams.end(), captured_now))
			record(waits_.back());
	}

	bool captured(cudaStream_t stream) const { return capturing_ || captured_now(stream); }

	static bool captured_now(cudaStream_t stream)
	{
		cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
		if (cudaStreamIsCapturing(stream, &status) == cudaSuccess)
			return status != cudaStreamCaptureStatusNone;
		(void)cudaGetLastError(); // the default stream cannot tell while another one is
		return true;
	}

	void record(Wait &wait)
	{
		On device(device_);
		while (!wait.streams.empty()) {
			cudaEvent_t event;
			C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
			wait.events.push_back(event);
			C10_CUDA_CHECK(cudaEventRecord(event, *wait.streams.begin()));
			wait.streams.erase(wait.streams.begin());
		}
	}

	// settle frees the pieces that other streams are done with, all of them if it is to wait for those.
	void settle(bool wait)
	{
		for (size_t i = 0; i < waits_.size();) {
			record(waits_[i]);
			if (!passed(waits_[i].events, wait)) {
				i++;
				continue;
			}
			auto piece = pieces_.find(waits_[i].p);
			piece->second.pending = false;
			join(piece);
			waits_.erase(waits_.begin() + static_cast<ptrdiff_t>(i));
		}
	}

	static bool passed(std::vector<cudaEvent_t> &events, bool wait)
	{
		while (!events.empty() && (wait ? cudaEventSynchronize(events.back()) : cudaEventQuery(events.back())) == cudaSuccess) {
			(void)cudaEventDestroy(events.back());
			events.pop_back();
		}
		if (!events.empty())
			(void)cudaGetLastError();
		return events.empty();
	}

	Block view(char *p, const Piece &piece) const
	{
		Block b{};
		b.address = reinterpret_cast<uint64_t>(p);
		b.segment = reinterpret_cast<uint64_t>(piece.segment);
		b.size = static_cast<int64_t>(piece.size);
		b.requested = piece.used ? static_cast<int64_t>(piece.requested) : 0;
		b.stream = reinterpret_cast<uint64_t>(piece.stream);
		b.id0 = id_.first;
		b.id1 = id_.second;
		b.state = piece.used ? USED : piece.pending ? PENDING : FREE;
		b.small = piece.size <= SMALL;
		return b;
	}

	template <class Stat> static void change(Stat &stat, int sign, size_t amount)
	{
		if (sign > 0)
			stat.increase(amount);
		else
			stat.decrease(amount);
	}

	void count(int sign, const Piece &piece)
	{
		for (int kind : {0, piece.size <= SMALL ? 1 : 2}) {
			change(stats_.allocation[kind], sign, 1);
			change(stats_.active[kind], sign, 1);
			change(stats_.allocated_bytes[kind], sign, piece.size);
			change(stats_.active_bytes[kind], sign, piece.size);
			change(stats_.requested_bytes[kind], sign, piece.requested);
		}
	}

	void reserve(int sign, size_t size)
	{
		for (int kind : {0, 2}) {
			change(stats_.segment[kind], sign, 1);
			change(stats_.reserved_bytes[kind], sign, size);
		}
	}
};

} // namespace gm
