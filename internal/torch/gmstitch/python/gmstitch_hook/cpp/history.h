// What torch.cuda.memory._record_memory_history asks for: the last requests and frees of each device, the stacks of what is live, and
// those who are told of each event.
#pragma once

#include "torch.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <stack>
#include <unordered_map>
#include <vector>

namespace gm {

using caching::RecordContext;

class History {
public:
	// Request is a live one, as far as its stack was recorded.
	struct Request {
		size_t size;
		cudaStream_t stream;
		PoolID pool;
		Context context;
	};

	// watching says whether requests and frees have to be noted, concerned whether frees have to be noted or forgotten; both are false
	// nearly always.
	bool watching() const { return watching_.load(std::memory_order_acquire); }
	bool concerned() const { return concerned_.load(std::memory_order_acquire); }
	bool recording() const { return recording_.load(std::memory_order_acquire); }

	void resize(size_t devices)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		if (devices_.size() < devices)
			devices_.resize(devices);
	}

	void record(bool on, caching::CreateContextFn recorder, size_t entries, RecordContext when, bool clear,
		const std::vector<std::string> &skipped)
	{
		TORCH_CHECK(when == RecordContext::NEVER || recorder);
		Dropped dropped;
		std::lock_guard<std::mutex> lock(mutex_);
		recorder_.store(on ? recorder : nullptr);
		when_.store(on ? when : RecordContext::NEVER);
		entries_ = std::max<size_t>(entries, 1);
		skipped_ = skipped;
		if (!on || clear) {
			for (auto &d : devices_)
				dropped.entries.push_back(std::move(d.entries));
			for (auto &d : devices_)
				d.entries.clear();
			annotations_.clear();
		}
		recording_.store(on);
		watch();
	}

	void track(caching::AllocatorTraceTracker tracker)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		trackers_.push_back(std::move(tracker));
		watch();
	}

	// gather returns the stack of the caller if it is to be recorded for a purpose. No lock may be held: it may take Python's.
	Context gather(RecordContext purpose) const
	{
		auto recorder = recorder_.load();
		return recorder && when_.load() >= purpose ? recorder() : nullptr;
	}

	void allocated(DeviceIndex device, void *p, Request request)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		note(TraceEntry::ALLOC, device, reinterpret_cast<size_t>(p), request.size, request.stream, request.pool, request.context);
		if (recording_) {
			live_[p] = std::move(request);
			watch();
		}
	}

	// freed notes the end of a request. What is known of it is that of its begin, or else what the caller says.
	void freed(DeviceIndex device, void *p, Request request, Context context)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		auto found = live_.find(p);
		if (found != live_.end()) {
			request = std::move(found->second);
			live_.erase(found);
			watch();
		}
		if (!context)
			context = request.context;
		auto address = reinterpret_cast<size_t>(p);
		note(TraceEntry::FREE_REQUESTED, device, address, request.size, request.stream, request.pool, context);
		note(TraceEntry::FREE_COMPLETED, device, address, request.size, request.stream, request.pool, context);
	}

	// forget drops what is known of a request that ends.
	void forget(void *p)
	{
		Request ended; // whose stack is released once no lock is held
		std::lock_guard<std::mutex> lock(mutex_);
		auto found = live_.find(p);
		if (found == live_.end())
			return;
		ended = std::move(found->second);
		live_.erase(found);
		watch();
	}

	// note_one notes what happens to no request.
	void note_one(typename TraceEntry::Action action, DeviceIndex device, size_t address, size_t size, cudaStream_t stream, const PoolID &pool,
		const Context &context)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		note(action, device, address, size, stream, pool, context);
	}

	Context stack_of(void *p)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		auto found = live_.find(p);
		return found == live_.end() ? nullptr : found->second.context;
	}

	void annotate(const std::vector<std::pair<std::string, std::string>> &pairs)
	{
		if (!recording())
			return;
		Annotation a(current_device(), c10::getApproximateTime());
		for (auto &pair : pairs)
			a.recordUserMetadata(pair.first, pair.second);
		std::lock_guard<std::mutex> lock(mutex_);
		annotations_.push_back(std::move(a));
		while (annotations_.size() > entries_)
			annotations_.pop_front();
	}

	void set_metadata(const std::string &text)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		metadata_ = text;
	}

	std::string metadata()
	{
		std::lock_guard<std::mutex> lock(mutex_);
		return metadata_;
	}

	static std::stack<std::string> &compiled()
	{
		static thread_local std::stack<std::string> names;
		return names;
	}

	// fill puts the entries, with times in microseconds, into a snapshot.
	void fill(caching::SnapshotInfo &snapshot, bool traces)
	{
		auto nanoseconds = clock_.makeConverter();
		std::lock_guard<std::mutex> lock(mutex_);
		snapshot.external_annotations.assign(annotations_.begin(), annotations_.end());
		for (auto &a : snapshot.external_annotations)
			a.time_.t_ = nanoseconds(a.time_.approx_t_) / 1000;
		for (auto &d : devices_) {
			if (!traces)
				break;
			snapshot.device_traces.emplace_back(d.entries.begin(), d.entries.end());
			for (auto &entry : snapshot.device_traces.back())
				entry.time_.t_ = nanoseconds(entry.time_.approx_t_) / 1000;
		}
	}

private:
	using Annotation = typename decltype(caching::SnapshotInfo::external_annotations)::value_type;
	struct Device {
		std::deque<TraceEntry> entries;
	};
	struct Dropped { // stacks that are released once no lock is held
		std::vector<std::deque<TraceEntry>> entries;
	};

	std::atomic<bool> watching_{false}, concerned_{false}, recording_{false};
	std::atomic<caching::CreateContextFn> recorder_{nullptr};
	std::atomic<RecordContext> when_{RecordContext::NEVER};
	c10::ApproximateClockToUnixTimeConverter clock_;
	std::mutex mutex_;
	size_t entries_ = 1;
	std::vector<std::string> skipped_;
	std::vector<caching::AllocatorTraceTracker> trackers_;
	std::vector<Device> devices_;
	std::deque<Annotation> annotations_;
	std::unordered_map<void *, Request> live_;
	std::string metadata_;

	void watch()
	{
		watching_.store(recording_ || !trackers_.empty());
		concerned_.store(watching_ || !live_.empty());
	}

	void note(typename TraceEntry::Action action, DeviceIndex device, size_t address, size_t size, cudaStream_t stream, const PoolID &pool,
		const Context &context)
	{
		if (!recording_ && trackers_.empty())
			return;
		auto &names = compiled();
		auto entry = make_entry(action, device, address, size, stream, pool, when_.load() >= RecordContext::ALLOC ? context : nullptr,
			names.empty() ? "N/A" : names.top(), metadata_);
		for (auto &tracker : trackers_)
			tracker(entry);
		if (!recording_ || static_cast<size_t>(device) >= devices_.size() || skips(action))
			return;
		auto &entries = devices_[device].entries;
		entries.push_back(std::move(entry));
		while (entries.size() > entries_)
			entries.pop_front();
	}

	bool skips(typename TraceEntry::Action action) const
	{
		static const char *const names[] = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
			"segment_unmap", "snapshot", "oom"};
		return std::find(skipped_.begin(), skipped_.end(), names[action]) != skipped_.end();
	}
};

} // namespace gm
