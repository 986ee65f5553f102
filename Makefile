.PHONY: demo smoke test kube verify bench-path bench-core mutate
demo smoke test kube verify bench-path bench-core mutate:
	@RESET="$(RESET)" ./dev $@ $(ARGS)
