"""`manage.py demo` and `manage.py smoke`: the whole of Berth on one machine, from one command."""
