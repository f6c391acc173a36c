// A stand-in for libc10.so. With -DOTHER the constructor of Error has another form, as in a PyTorch to come it may.
#include "c10.h"

namespace c10 {
int errors;

#ifdef OTHER
Error::Error(std::string msg, SourceLocation location) : msg_(std::move(msg)), caller_(nullptr)
#else
Error::Error(SourceLocation location, std::string msg) : msg_(std::move(msg)), caller_(nullptr)
#endif
{
	errors++;
	what_ = msg_ + " (" + location.function + ")";
	context_.push_back("context");
	backtrace_ = std::make_shared<const std::string>("backtrace");
}

Error::~Error() { errors--; }

const char *Error::what() const noexcept { return what_.c_str(); }

void detail::torchCheckFail(const char *function, const char *file, uint32_t line, const char *msg)
{
#ifdef OTHER
	throw Error(msg, {function, file, line});
#else
	throw Error({function, file, line}, msg);
#endif
}
} // namespace c10
