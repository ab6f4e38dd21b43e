"""`python -m migrate` is `migrate`."""
from migrate.cli.main import main

main()
