#pragma once

#include <stdexcept>
#include <string>

/// \file
/// What roost throws. Every message is one line: what failed, where, and what to do about it.

namespace roost {

/// Base of everything that roost throws on purpose.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A call that cannot be meant: a load factor of 0, results shorter than the queries. Nothing was changed.
class invalid_argument : public error {
 public:
  using error::error;
};

/// Memory was refused. Says what was asked for and what was there. The table is as it was before the call.
class out_of_memory : public error {
 public:
  using error::error;
};

/// A CUDA call failed, or the device is not there. Names the call.
class device_error : public error {
 public:
  using error::error;
};

/// A build gave up after all its restarts. With the default options and a real key set this does not happen.
class build_error : public error {
 public:
  using error::error;
};

/// A file cannot be written or read, or is not what it should be. Names the file.
class file_error : public error {
 public:
  using error::error;
};

}  // namespace roost
