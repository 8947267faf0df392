"""How data enter and leave: arrays, columns and frames of all libraries, and Python values, exactly."""
