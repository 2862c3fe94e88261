//! machine_file
