"""Before anyone decides: what a migration of a project would take."""
