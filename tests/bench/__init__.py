"""Benchmarks: each a module that prints a table and writes results/<name>.json.

What must not live here: assertions; figures are judged by who reads them.
"""
