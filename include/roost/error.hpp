#pragma once

#include <concepts>
#include <cstdio>
#include <initializer_list>
#include <stdexcept>
#include <string>

/// \file
/// The exceptions of roost. Every message is one line: what failed, where, and what to do about it.

namespace roost {

namespace detail {

/// A piece of a message: a text or a number.
class message_part {
 public:
  message_part(const char* text) : text_(text) {}
  message_part(const std::string& text) : text_(text.c_str()) {}
  template <std::unsigned_integral T>
  message_part(T number) : number_(number) {}
  template <std::signed_integral T>
  message_part(T number) : number_(static_cast<unsigned long long>(number)), negative_(number < 0) {}
  message_part(double number) : fraction_(number), is_fraction_(true) {}

  void append_to(std::string& message) const;

 private:
  const char* text_ = nullptr;
  unsigned long long number_ = 0;
  double fraction_ = 0;
  bool negative_ = false, is_fraction_ = false;
};

inline void message_part::append_to(std::string& message) const {
  if (text_ != nullptr) {
    message += text_;
  } else if (is_fraction_) {
    char text[32];
    std::snprintf(text, sizeof(text), "%g", fraction_);
    message += text;
  } else {
    message += negative_ ? std::to_string(static_cast<long long>(number_)) : std::to_string(number_);
  }
}

/// Throws an error whose message is these parts. Out of line, so that it costs the code around it nothing.
template <class Error>
[[noreturn, gnu::cold, gnu::noinline]] void raise(std::initializer_list<message_part> parts) {
  std::string message;
  for (const message_part& part : parts) part.append_to(message);
  throw Error(message);
}

}  // namespace detail

/// Base class of all exceptions that roost throws on purpose.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Arguments are invalid: a load factor of 0, or results shorter than the queries. Nothing was changed.
struct invalid_argument : error {
  using error::error;
};

/// An allocation failed. The message says how much was requested and how much was available. The table is as
/// it was before the call, unless the call says otherwise.
struct out_of_memory : error {
  using error::error;
};

/// A CUDA call failed, or there is no device. The message names the call.
struct device_error : error {
  using error::error;
};

/// A build gave up after all its restarts. This does not happen with the default options and real keys.
struct build_error : error {
  using error::error;
};

/// Another process of a group has failed during a call, or makes another call (roost/shards/rank.hpp). The
/// message names its rank, and says why it failed as far as that is known.
class rank_error : public error {
 public:
  rank_error(const std::string& message, unsigned rank) : error(message), rank_(rank) {}
  unsigned rank() const noexcept { return rank_; }

 private:
  unsigned rank_;
};

/// A file cannot be written or read, or has the wrong contents. The message names the file.
struct file_error : error {
  using error::error;
};

}  // namespace roost
