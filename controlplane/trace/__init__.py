"""The openb trace (Alibaba, 2023) replayed through the whole of Berth: an installation of its own,
the trace's nodes as one simulated cluster, its pods submitted through the API.

What must not live here: any short cut past the API, the loop or the ledger.
"""
