"""A Kubernetes API server, scheduler and kubelets in one process, for demos, tests and replays.

It speaks the subset of the API that Berth uses, over HTTP, on loopback only. Nothing of Berth but
`controlplane.kernel.clock` is imported here.
"""
