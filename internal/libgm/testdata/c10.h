/* The part of PyTorch's c10/util/Exception.h that libgm.so knows the layout and the symbols of. */
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#define C10_API __attribute__((visibility("default")))

namespace c10 {
struct SourceLocation {
	const char *function, *file;
	uint32_t line;
};

class C10_API Error : public std::exception {
	std::string msg_;
	std::vector<std::string> context_;
	std::shared_ptr<const std::string> backtrace_;
	std::string what_;
	const void *caller_;

public:
#ifdef OTHER
	Error(std::string msg, SourceLocation location);
#else
	Error(SourceLocation location, std::string msg);
#endif
	__attribute__((visibility("hidden"))) ~Error() override;
	const char *what() const noexcept override;
};

class C10_API OutOfMemoryError : public Error {
	using Error::Error;
};

namespace detail {
[[noreturn]] C10_API void torchCheckFail(const char *function, const char *file, uint32_t line, const char *msg);
}

extern C10_API int errors; // that live
} // namespace c10
