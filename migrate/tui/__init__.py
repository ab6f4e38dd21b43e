"""The full screen of `migrate review`. Only this package imports textual."""
